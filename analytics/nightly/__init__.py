"""The nightly process: starts a run when it is due, and reports how it ended."""
