"""The nightly job: Spark proves every consumer's total against the rides, and has wrong ones reset."""
