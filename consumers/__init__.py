"""Consumers: what all readers of the log share, and a folder for each kind.

`reader` does what every consumer needs: it takes a batch, detects gaps and re-sends, heals, and
moves the checkpoint. A `projection` is what one kind makes of the rides; `totals` is the first.
"""
