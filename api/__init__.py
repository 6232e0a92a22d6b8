"""The HTTP API: takes rides, and shows rides and the consumers' totals."""
