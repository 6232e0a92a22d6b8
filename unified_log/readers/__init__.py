"""Readers of the log: what each does with a batch, a gap, a re-send and a malformed entry."""
