"""The nightly job: Spark proves every consumer's total right, or gets it reset."""
