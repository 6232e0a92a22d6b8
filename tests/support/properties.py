"""How Hypothesis looks for counterexamples: the same examples each time, without a deadline.

It stores none for the next run: a counterexample is a bug to fix, or becomes a test of its own.
"""

from hypothesis import settings

always = settings(derandomize=True, database=None, deadline=None, max_examples=200)
briefly = settings(always, max_examples=50)  # where an example takes milliseconds
