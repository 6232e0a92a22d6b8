"""Consumers: what all readers of the log share, and a folder for each kind.

A `reader` follows the log from a checkpoint: it takes a batch, tells rides from gaps, re-sends and
nonsense, and moves the checkpoint. What becomes of the rides is up to a `handler`: that of `totals`
counts them in the transaction that moves the checkpoint; that of `rollup` does its work before,
since it can be repeated. `receipts` shares the work among several processes, as a consumer group of
the stream.
"""
