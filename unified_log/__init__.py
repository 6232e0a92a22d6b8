"""The unified log: a transactional outbox, a log on a Redis stream, and readers that heal."""
