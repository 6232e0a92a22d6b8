"""`make break`: breaks the running fleet in one way, and shows whether it heals."""
