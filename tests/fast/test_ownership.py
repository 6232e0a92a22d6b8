"""Whose a warehouse is, as its runs and the database's terms tell."""

import pytest

from analytics.ledger import Owner
from analytics.ownership import History, history_of, why_rebuild
from unified_log.errors import Unavailable

# Term b was sent under up to ride 20; c was replaced at once, and d is the newest.
OURS = history_of("1-1", [(10, "b", []), (20, "d", ["c"])], last_sent=30)
NEVER_LED = history_of("1-1", [], last_sent=5)
UNKNOWN = history_of("", [], last_sent=5)


def run(upto: int, term: str, database: str = "2-2") -> Owner:
    return Owner(upto, database, term)


@pytest.mark.parametrize(
    ("ours", "runs"),
    [
        (OURS, []),
        (OURS, [run(10, "", "1-1")]),
        (OURS, [run(20, "b")]),
        (OURS, [run(20, "c")]),
        (OURS, [run(30, "d")]),
        (OURS, [run(30, "e"), run(30, "d")]),
        (NEVER_LED, [run(5, "", "1-1")]),
        (UNKNOWN, [run(5, "", "")]),
    ],
)
def test_runs_whose_rides_we_share_are_sound(ours: History, runs: list[Owner]) -> None:
    assert why_rebuild("/warehouse", runs, ours) == ""


@pytest.mark.parametrize(
    ("ours", "runs"),
    [
        (OURS, [run(11, "", "1-1")]),
        (OURS, [run(21, "b")]),
        (OURS, [run(21, "c")]),
        (OURS, [run(31, "d")]),
        (OURS, [run(15, "e", "1-1")]),
        (OURS, [run(15, "b"), run(25, "e")]),
        (OURS, [run(15, "c"), run(25, "e")]),
        (NEVER_LED, [run(6, "", "1-1")]),
        (OURS._replace(last_sent=9), [run(10, "", "1-1")]),
    ],
)
def test_runs_of_ours_with_rides_that_we_lost_are_not(ours: History, runs: list[Owner]) -> None:
    assert "no longer matches" in why_rebuild("/warehouse", runs, ours)


@pytest.mark.proves("owner")
@pytest.mark.parametrize(
    ("ours", "runs"),
    [
        (OURS, [run(5, "")]),
        (OURS, [run(5, "e")]),
        (OURS, [run(5, ""), run(6, "e")]),
        (NEVER_LED, [run(5, "")]),
        (NEVER_LED, [run(5, "b")]),
        (NEVER_LED, [run(5, "", "")]),
        (UNKNOWN, [run(5, "")]),
        (UNKNOWN, [run(6, "", "")]),
    ],
)
def test_runs_of_another_database_are_refused(ours: History, runs: list[Owner]) -> None:
    with pytest.raises(
        Unavailable, match="/warehouse belongs to another database: set another WAREHOUSE_DIR"
    ):
        why_rebuild("/warehouse", runs, ours)
