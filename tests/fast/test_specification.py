"""The specification: all of its states at a small bound, and that each invariant can fail."""

from collections.abc import Callable, Iterable
from functools import cache
from itertools import product
from typing import Any, ClassVar

import pytest

from lab.specification.__main__ import SABOTAGES, SMALL
from lab.specification.core import Core
from lab.specification.explorer import Refused, Result, Step, System, explore
from lab.specification.inbox import Inbox
from lab.specification.queue import Queue
from lab.specification.rollup import Rollup

HALF = "the consumer commits its checkpoint, and crashes before its total is written"
LATE = "ride 1 is committed late, below last_sent, and repaired: all is set back below it"
# The one step at which each story turns: who reads it learns what the step is for.
TURNS = {
    "no-barrier": "writer 1 commits its ride and the staged record",
    "writers-first": "leader 1 reads the sequence: 2",
    "delete-more": "leader 1 deletes its batch, moves last_sent to 2 and commits",
    "no-compare-and-set": "leader 1 deletes its batch, moves last_sent to 1 and commits",
    "checkpoint-alone": HALF,
    "past-last-sent": "the consumer counts what it has read, heals, and commits its checkpoint",
    "no-terms": "leader 2 appends its batch to the log",
    "older-generation": "leader 2 marks the minutes of the rides up to 1",
    "no-heal": "Redis loses all of the log but log[0:0]",
    "acknowledged-first": "the worker acknowledges the entry of ride 1",
    "waits-for-last-sent": "the worker inserts the row of ride 1, unless it is there",
    "sweep-regardless": "the sweep inserts their rows and moves inbox_to, if there was no repair",
    "complete-regardless": LATE,
    "outcomes-alone": "a worker looks for the first row up to inbox_to that has no outcome",
    "unsent-rides": "a worker writes attempt 1 down, with a fresh lease",
    "late-refusal": "the outcome of attempt 2 is saved",
    "late-delivery": "the outcome of attempt 1 is saved",
    "replay-reopens": "the dead letter is replayed",
    "replay-at-once": "the dead letter is replayed",
    "number-as-lease": "the outcome of attempt 1 is saved",
    "written-afterwards": "a worker writes attempt 1 down, with a fresh lease",
    "no-deadline": "the deadline of the attempt passes, and then its lease",
    "no-burial": "the worker of attempt 2 crashes",
}


@cache
def small(name: str) -> Result:
    """What is found in it, which is the same each time."""
    return explore(SMALL[name])


@cache
def unbroken(kind: Callable[..., System], **bounds: int) -> Result:
    """What is found where no step is broken."""
    return explore(kind(**bounds))


@pytest.mark.parametrize("name", SMALL)
def test_every_state_is_right_and_comes_to_rest(name: str) -> None:
    result = small(name)
    assert (result.broken, result.story) == ("", ())
    assert result.states > 1000


def test_no_step_is_idle() -> None:
    """A step that is never taken would prove nothing."""
    taken: set[str] = set()
    for name, system in SMALL.items():
        taken |= {f"{type(system).__name__}.{step}" for step in small(name).transitions}
    for kind in Core, Rollup, Inbox, Queue:
        steps = {step.__qualname__ for step in kind().steps}
        assert steps - taken == ({"Core.commits_half"} if kind is Core else set())


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_is_caught_by_its_invariant(name: str) -> None:
    number, kind, bounds = SABOTAGES[name]
    result = explore(kind(name, **bounds))
    assert result.broken == number
    assert TURNS[name] in result.story
    if number != "liveness":  # which shows once all states are known
        assert len(result.story) == result.depth + 1
    assert unbroken(kind, **bounds).broken == ""


def test_a_number_as_a_lease_is_given_out_twice_if_the_receiver_is_away() -> None:
    result = explore(Queue("number-as-lease", takes=2, repeats=1, replays=0))
    assert result.broken == "15, attempts"
    assert result.story[-1] == "the outcome of attempt 1 is saved"


class Counters(System):
    """Three counters, each up to three; the last two move only after the first has."""

    start = (0, 0, 0)
    complete = (3, 3, 3)
    by_chance: tuple[Step, ...] = ()
    invariants: ClassVar = {}

    def rises(self, s: Any, at: int) -> Any:
        """counter {at} rises"""
        return (*s[:at], s[at] + 1, *s[at + 1 :])

    def ranges(self, s: Any) -> dict[str, Iterable[int]]:
        return {"at": [at for at in range(3) if s[at] < 3 and (at == 0 or s[0] > 0)]}

    def is_complete(self, s: Any) -> bool:
        return bool(s == self.complete)


def test_it_visits_what_brute_force_finds() -> None:
    states = {s for s in product(range(4), repeat=3) if s[0] > 0 or s == (0, 0, 0)}
    transitions = sum(s[at] < 3 and (at == 0 or s[0] > 0) for s in states for at in range(3))
    result = explore(Counters())
    assert (result.states, result.transitions.total()) == (len(states), transitions)
    assert result.broken == ""


def test_a_story_is_as_short_as_can_be() -> None:
    class Small(Counters):
        invariants: ClassVar = {"sum": lambda self, s: sum(s) < 4}

    result = explore(Small())
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
            """counter {at} rises"""
            return super().rises(s, at) if s != (3, 3, 2) else (3, 3, 1)

    assert explore(Round()).broken == "liveness"


def test_steps_are_judged_at_any_number() -> None:
    """What was recorded of a real run is checked by the same functions."""
    core = Core()
    s = core.draws(core.locks(core.start, 77), 77, 4711, 539_837)
    s = core.begins(core.takes(s, 77), 90)
    s = core.lists_the_writers(core.reads_the_sequence(s, 90, 4711), 90)
    s = core.appends(core.selects(s, 90, 1000), 90)
    with pytest.raises(Refused):
        core.moves_last_sent(s, 90, 4712)
    with pytest.raises(Refused):
        core.counts(s)
    s = core.moves_last_sent(s, 90, 4711)
    assert core.counts(core.reads(s, 1000, 4711)).consumer.distance == 539_837
