"""The HTTP API: takes rides and ratings, and shows what became of them."""
