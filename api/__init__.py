"""The HTTP API: takes rides, shows rides and the consumers' totals."""
