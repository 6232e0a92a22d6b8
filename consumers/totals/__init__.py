"""The running total of all rides: exactly once, moving with the checkpoint in one transaction."""
