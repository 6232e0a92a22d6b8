"""The streamer moves settled staged records into the log, in order, in batches."""
