"""Two cells, each on a host of its own, the router before them, and a drill that breaks them."""
