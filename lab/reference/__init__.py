"""The pages of reference that are made from the code: `python -m lab.reference` writes them.

What a page says of a setting, a metric, a route or a table stands once, beside it in the code. The
page holds it in a block (`lab/reference/blocks.py`); what is outside of the blocks is written by
people.
"""
