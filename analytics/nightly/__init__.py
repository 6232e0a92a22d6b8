"""The nightly process: when a run is due, and how it ended."""
