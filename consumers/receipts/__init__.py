"""Receipts: at least once, by workers that share an inbox and a queue."""
