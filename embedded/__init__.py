"""Postgres and Redis from PyPI wheels, for a machine that has none."""
