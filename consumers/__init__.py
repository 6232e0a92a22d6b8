"""Consumers: what all readers of the log share, and a folder for each kind.

A `reader` follows the log from a checkpoint: it takes a batch, tells records from gaps, re-sends
and nonsense, and moves the checkpoint. What becomes of the records is up to a `handler`: those of
`totals` and `ratings` count them in the transaction that moves the checkpoint; that of `rollup`
does its work before, since it can be repeated. `receipts` shares the work among several processes,
as a consumer group of the stream.
"""
