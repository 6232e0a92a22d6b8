"""The drill of an upgrade: what it compares can fail it, and which release it takes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.chaos.clients import Refused
from lab.pauses import longest
from lab.upgrade.releases import export, named_in
from lab.upgrade.verdict import LONGER, LONGEST, MOST_REFUSED, Step, findings, shown

SAID = """\
## [Unreleased]

## [1.1.0] - 2027-01-02

Commit 0123abcd.

## [1.0.0] - 2026-11-28

Commit 2336493f.
"""


def steps() -> list[Step]:
    """An unchanged roll in which one request was refused, a migration, and a roll as good."""
    refused = Refused(1.0, "503: no API is ready")
    return [
        Step("unchanged roll", 12, 30, 900, [refused], {"consumer0": 2.5}),
        Step("the newer schema", 0, 10, 300, [], {"consumer0": 0.5}),
        Step("roll to the newer code", 12, 30, 900, [refused], {"consumer0": 2.5}),
    ]


def refuse_one_more(step: Step) -> None:
    step.refused.append(Refused(2.0, "502: the API was lost"))


def stand_still(step: Step) -> None:
    step.pauses["consumer0"] = 2.6 + LONGER


def take_nothing(step: Step) -> None:
    step.rides = 0


def test_an_upgrade_that_costs_what_an_unchanged_roll_does_is_well() -> None:
    assert [*findings(steps())] == []


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (refuse_one_more, "requests were refused"),
        (stand_still, "consumer0 stood still for 7.6 s"),
        (take_nothing, "no ride was taken"),
    ],
)
def test_a_step_that_costs_more_is_found(
    number: int, spoil: Callable[[Step], None], said: str
) -> None:
    played = steps()
    spoil(played[number])
    [finding] = findings(played)
    assert finding.startswith(played[number].name)
    assert said in finding


def refuse_many(step: Step) -> None:
    step.refused *= 1 + int(step.rides * MOST_REFUSED)


def stand_still_for_long(step: Step) -> None:
    step.pauses["consumer0"] = LONGEST + 1


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (refuse_many, "unchanged roll: 10 requests were refused, where 9 may be: 503: no API is"),
        (stand_still_for_long, "unchanged roll: consumer0 stood still for 21.0 s"),
    ],
)
def test_an_unchanged_roll_must_not_cost_much_either(
    spoil: Callable[[Step], None], said: str
) -> None:
    played = steps()
    spoil(played[0])
    assert next(findings(played)).startswith(said)


def test_a_drill_whose_fleet_has_not_come_up_ends_with_a_sentence() -> None:
    assert [*findings([])] == []
    assert shown([]).startswith("| step")


def test_the_table_has_a_row_for_each_step() -> None:
    header, _, first, *_ = shown(steps()).splitlines()
    assert [cell.strip() for cell in header.split("|")[1:-1]][-2:] == ["refused", "consumer0"]
    assert [cell.strip() for cell in first.split("|")[1:-1]] == [
        *("unchanged roll", "12", "30", "900", "1", "2.5 s")
    ]


def test_a_pause_counts_in_full_where_a_step_has_only_a_part_of_it() -> None:
    moves = [1.0, 2.0, 7.0, 8.0]
    assert longest(moves, began=0, ended=1.5) == 1.0
    assert longest(moves, began=6.0, ended=9.0) == 5.0
    assert longest(moves, began=9.0, ended=20.0) == 12.0
    assert longest([], began=3.0, ended=5.0) == 2.0


def test_the_last_release_is_the_newest_that_the_changelog_names_with_a_commit() -> None:
    assert named_in(SAID) == ("release 1.1.0", "0123abcd")
    new = SAID.replace("Commit 0123abcd.", "Upgrades from commit 4567cdef.")
    assert named_in(new) == ("what 1.1.0 upgrades from", "4567cdef")
    assert named_in("## [Unreleased]\n") is None


def test_what_git_refuses_is_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OSError, match=r"^fatal: .*nonsense"):
        export("nonsense", tmp_path / "tree")
    assert not any(capfd.readouterr())
