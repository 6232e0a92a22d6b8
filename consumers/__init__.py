"""Consumers read the log and keep a running total, each on its own; they must always agree."""
