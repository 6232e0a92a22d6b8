"""The nightly job: Spark proves every consumer's total right, or has it reset."""
