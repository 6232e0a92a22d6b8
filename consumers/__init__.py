"""Consumers: what all readers of the log share, and a folder for each kind.

`follower` does what everyone needs who follows the log from a checkpoint: it takes a batch, and
tells rides from gaps, re-sends and nonsense. `reader` counts each ride once: it heals the gaps, and
moves the checkpoint in one transaction with what a `projection` makes of the rides, such as
`totals`. `rollup` needs no such transaction, for its work can be repeated. `receipts` shares the
work among several processes, as a consumer group of the stream.
"""
