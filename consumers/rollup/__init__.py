"""The rollup: rides per minute. Idempotent, so no transaction has to span two servers."""
