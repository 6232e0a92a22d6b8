"""How Hypothesis looks for a counterexample: in the same places each time, for as long as it takes.

It keeps none for the next run: one that is found is a bug, or becomes a test of its own.
"""

from hypothesis import settings

always = settings(derandomize=True, database=None, deadline=None, max_examples=200)
