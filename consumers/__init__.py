"""Consumers: what reads the log with a checkpoint; and, a folder each, what they make of the rides.

`reader` does what every consumer needs: it takes a batch, finds gaps and re-sends, heals, and moves
the checkpoint. A `projection` is what one kind makes of the rides; the totals are the first.
"""
