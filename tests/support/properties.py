"""How Hypothesis looks for counterexamples: the same examples each time, without a deadline.

It stores none for the next run: a counterexample is a bug to fix, or becomes a test of its own.
"""

from collections.abc import Callable
from typing import TypeVar

from hypothesis import given, settings
from hypothesis.strategies import SearchStrategy

always = settings(derandomize=True, database=None, deadline=None, max_examples=200)
ENOUGH = always.max_examples // 8

T = TypeVar("T")
R = TypeVar("R")


def holds_unless_refused(
    examples: SearchStrategy[T],
    read: Callable[[T], R],
    refusal: type[Exception],
    check: Callable[[T, R], None],
) -> None:
    """Each example is refused, or its result passes the check; an eighth must not be refused.

    Otherwise the check would see almost nothing, and pass, whatever it says.
    """
    checked = 0

    @always
    @given(examples)
    def each(example: T) -> None:
        nonlocal checked
        try:
            result = read(example)
        except refusal:
            return
        check(example, result)
        checked += 1

    each()
    assert checked >= ENOUGH
