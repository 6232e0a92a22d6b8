"""A run's result, as text for a terminal, JSON for a program and a page for a browser."""
