"""The specification: all of its states at a small bound, and that each invariant can fail."""

from functools import cache

import pytest

from lab.specification.__main__ import SABOTAGES, SMALL, main
from lab.specification.core import Core
from lab.specification.explorer import Result, explore
from lab.specification.held_out import HoldingOut
from lab.specification.inbox import Inbox
from lab.specification.judge import Judge
from lab.specification.queue import Queue
from lab.specification.rollup import Rollup

KINDS = (Core, HoldingOut, Rollup, Inbox, Queue, Judge)


@cache
def small(name: str) -> Result:
    """What is found in it, which is the same each time."""
    return explore(SMALL[name])


@cache
def sabotaged(name: str) -> Result:
    _, kind, bounds = SABOTAGES[name]
    return explore(kind(name, **bounds))


@pytest.mark.parametrize("name", SMALL)
def test_every_state_is_right_and_comes_to_rest(name: str) -> None:
    result = small(name)
    assert (result.broken, result.story) == ("", ())


def test_no_step_is_idle() -> None:
    """A step that is never taken would prove nothing."""
    taken: set[str] = set()
    for name, system in SMALL.items():
        taken |= {f"{type(system).__name__}.{step}" for step in small(name).transitions}
    steps = {step.__qualname__ for kind in KINDS for step in kind().steps}
    assert steps - taken == {"Core.commits_half"}  # a sabotage takes it


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_is_caught_by_its_invariant(name: str) -> None:
    number, _, _ = SABOTAGES[name]
    result = sabotaged(name)
    assert result.broken == number
    assert result.story


@pytest.mark.parametrize(
    ("alone", "missed"),
    [("writes-not-counted", "Redis is set back"), ("sizes-not-compared", "Redis evicts the pset")],
)
def test_writes_and_sizes_of_an_ick_each_show_a_loss_that_the_other_hides(
    alone: str, missed: str
) -> None:
    story = " / ".join(sabotaged(alone).story)
    assert missed in story
    assert len([loss for loss in ("set back", "evicts", "flushed") if loss in story]) == 1


def test_a_sabotage_that_there_is_not_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["python -m lab.specification", "--sabotage", "nope"])
    with pytest.raises(SystemExit, match=r"^2$"):
        main()
    [line] = capsys.readouterr().err.splitlines()
    assert line.endswith("unknown: nope; --help explains")


def test_each_invariant_has_a_sabotage() -> None:
    caught = {(kind, number) for number, kind, _ in SABOTAGES.values()}
    assert caught >= {(kind, number) for kind in KINDS for number in kind.invariants}
