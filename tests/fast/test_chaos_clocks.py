"""What chaos makes of times that a clock has noted which was wrong for a while."""

import time

import pytest

from lab.chaos.clocks import Jump, true_moment


def test_what_was_noted_while_the_clock_was_ahead_happened_then() -> None:
    now = time.monotonic()
    jumps = [Jump(now - 20, now - 10, 3600), Jump(now - 9, now - 8, -3600)]
    assert true_moment(now - 15 + 3600, jumps) == pytest.approx(now - 15, abs=1e-6)
    assert true_moment(now - 8.5 - 3600, jumps) == pytest.approx(now - 8.5, abs=1e-6)


def test_what_was_noted_while_the_clock_was_right_happened_as_noted() -> None:
    now = time.monotonic()
    assert true_moment(now - 30, [Jump(now - 20, now - 10, 3600)]) == now - 30


def test_in_doubt_something_happened_later() -> None:
    now = time.monotonic()
    assert true_moment(now - 55, [Jump(now - 20, now - 10, -45)]) == now - 10
