"""Consumers: what all readers of the log share, and a folder for each kind.

`follower` does what everyone needs who follows the log from a checkpoint: it takes a batch, and
tells rides from gaps, re-sends and nonsense. `reader` counts each ride once: it heals the gaps, and
moves the checkpoint in one transaction with what a `projection` makes of the rides; `totals` is
one. `rollup` needs no such transaction, for its work is idempotent.
"""
