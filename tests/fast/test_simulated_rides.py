"""The rides that the simulator is going to post, and when."""

import itertools
import random
import statistics

import pytest

from demo.simulator.__main__ import schedule


def test_rides_come_at_random_moments_at_the_rate_asked() -> None:
    moments = [due for due, _ in schedule(random.Random(1), 1e6, 20_000)]
    gaps = [later - earlier for earlier, later in itertools.pairwise(moments)]
    # Exponential gaps: their spread is their mean. The clock can only have stretched a few.
    assert statistics.median(gaps) == pytest.approx(0.693e-6, rel=0.05)


def test_after_an_outage_it_catches_up_by_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter([100.0, 100.0, 200.0])
    monkeypatch.setattr("demo.simulator.__main__.monotonic", lambda: next(moments))
    rides = schedule(random.Random(1), 100, None)
    assert 100 < next(rides)[0] < 101
    assert 199 < next(rides)[0] < 200
