"""The leader: moves settled staged records into the log, in order, in batches, and trims it."""
