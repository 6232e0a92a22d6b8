"""The specification: all of its states at a small bound, and that each invariant can fail."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from specification.__main__ import SABOTAGES, SMALL
from specification.core import Bounds, Core
from specification.explorer import System, explore
from specification.group import Group
from specification.reset import Reset
from specification.rollup import Rollup
from specification.states import Invariants, Refused, Step

HALF = "consumer 0 commits its checkpoint, and crashes before its total is written"
# The one step at which each story turns: who reads it learns what the step is for.
TURNS = {
    "no-barrier": "writer 1 commits its ride and the staged record",
    "writers-first": "leader 1 reads the sequence: 2",
    "delete-more": "leader 1 deletes its batch, moves last_sent to 1 and commits",
    "no-compare-and-set": "leader 1 deletes its batch, moves last_sent to 1 and commits",
    "checkpoint-alone": HALF,
    "past-last-sent": "consumer 0 counts what it has read, heals, and commits its checkpoint",
    "no-terms": "writer 2 draws 1",
    "older-generation": "leader 2 marks the minutes of the rides up to 1",
}


@pytest.mark.parametrize("name", SMALL)
def test_every_state_is_right_and_comes_to_rest(name: str) -> None:
    result = explore(SMALL[name]())
    assert (result.broken, result.story) == ("", ())
    assert result.states > 1000


def test_no_step_is_idle() -> None:
    """A step that is never taken would prove nothing."""
    taken: set[str] = set()
    for system in SMALL.values():
        taken |= set(explore(system()).transitions)
    for kind in Core, Reset, Rollup, Group:
        steps = {name for name, method in vars(kind).items() if is_a_step(method)}
        assert steps - taken == ({"commits_half"} if kind is Core else set())


def is_a_step(method: Any) -> bool:
    """Whether it is told as a sentence of a story."""
    told = getattr(method, "__doc__", None) or ""
    return callable(method) and told != "" and not told.endswith(".")


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_is_caught_by_its_invariant(name: str) -> None:
    number, system = SABOTAGES[name]
    result = explore(system(name))
    assert result.broken == number
    assert TURNS[name] in result.story
    assert len(result.story) == result.depth + 1
    assert explore(system("")).broken == ""


def test_it_finds_the_same_each_time() -> None:
    one, other = (explore(SMALL["core, a loss"]()) for _ in range(2))
    assert one._replace(seconds=0) == other._replace(seconds=0)


class Counters(System):
    """Three counters, each up to three; the last two move only after the first has."""

    start = (0, 0, 0)
    complete = (3, 3, 3)

    def __init__(self) -> None:
        self.invariants: Invariants = {}

    def rises(self, s: Any, at: int) -> Any:
        """counter {at} rises"""
        return (*s[:at], s[at] + 1, *s[at + 1 :])

    def choices(self, s: Any) -> Iterator[Step]:
        return ((self.rises, (at,)) for at in range(3) if s[at] < 3 and (at == 0 or s[0] > 0))

    progress = choices

    def is_complete(self, s: Any) -> bool:
        return bool(s == self.complete)


def test_it_visits_what_brute_force_finds() -> None:
    states = {s for s in product(range(4), repeat=3) if s[0] > 0 or s == (0, 0, 0)}
    transitions = sum(s[at] < 3 and (at == 0 or s[0] > 0) for s in states for at in range(3))
    result = explore(Counters())
    assert (result.states, result.transitions.total()) == (len(states), transitions)
    assert result.broken == ""


def test_a_story_is_as_short_as_can_be() -> None:
    system = Counters()
    system.invariants = {"sum": lambda s: sum(s) < 4}
    result = explore(system)
    assert result.broken == "sum"
    assert len(result.story) == 4
    assert result.story[0] == "counter 0 rises"


def test_an_end_that_is_not_complete_is_found() -> None:
    system = Counters()
    system.complete = (3, 3, 4)
    assert explore(system).broken == "liveness"


def test_going_round_for_ever_is_found() -> None:
    class Round(Counters):
        def rises(self, s: Any, at: int) -> Any:
            return super().rises(s, at) if s != (3, 3, 2) else (3, 3, 1)

    assert explore(Round()).broken == "liveness"


def test_steps_are_judged_at_any_number() -> None:
    """What was recorded of a real run is checked by the same functions."""
    core = Core(Bounds(writers=0, leads=0, consumers=1))
    s = core.draws(core.locks(core.start, 77), 77, 4711, 539_837)
    s = core.begins(core.takes(s, 77), 90)
    s = core.lists_the_writers(core.reads_the_sequence(s, 90, 4711), 90)
    s = core.appends(core.selects(s, 90, 1000), 90)
    with pytest.raises(Refused):
        core.moves_last_sent(s, 90, 4712)
    with pytest.raises(Refused):
        core.counts(s, 0)
    s = core.moves_last_sent(s, 90, 4711)
    s = core.counts(core.reads(s, 0, 1000, 4711), 0)
    assert s.db.totals[0].distance == 539_837
