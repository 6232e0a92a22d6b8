"""Several fleets behind one router, each with its own servers. One fleet alone needs none of it."""
