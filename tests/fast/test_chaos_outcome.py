"""A run proves nothing by a recording that tells too little."""

from collections import Counter

import pytest

from lab.chaos.outcome import of_the_trace
from lab.chaos.trace.judge import Verdict


@pytest.mark.parametrize(
    ("met", "expected"),
    [
        ({"begins a life": 2, "counts": 9}, []),
        ({"begins a life": 2, "counts nothing": 9}, ["none that was counted"]),
        ({"begins a life": 3, "counts": 9}, ["3 lives, and Postgres was replaced 1 times"]),
    ],
)
def test_what_a_recording_must_tell(met: dict[str, int], expected: list[str]) -> None:
    found = [*of_the_trace(Verdict(Counter(met), steps=9), rides=5, replacements=1)]
    assert len(found) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, found, strict=True))
