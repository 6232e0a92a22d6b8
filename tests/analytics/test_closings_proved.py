"""Each run compares what is closed with the rides: a mismatch is named and held, never repaired."""

from typing import Any

import pytest

from analytics.balances import AGREES, DIFFERS, WAITS
from tests.support.attacks import (
    TOTALS,
    all_have_counted,
    by_hand,
    in_postgres,
    named_ledger,
    standing,
)
from tests.support.books import Books
from tests.support.closings import REHASH, alter
from tests.support.completed_runs import REASON, last_run
from tests.support.disasters import flush
from tests.support.jobs import approve, closing, reconcile
from tests.support.periods import DAYS, three_days
from tests.support.world import catch_up, exact

LONGER = "UPDATE rides SET distance = distance + 1 WHERE id = {}"
ROWS = "SELECT * FROM closings ORDER BY id"


@pytest.fixture
def closed(books: Books) -> Books:
    """Three days, of which two are closed, at the positions 100,000 and 100,004."""
    three_days(books)
    for when in (DAYS[0], "100004"):
        assert closing(books.world, "--upto", when).status == 0
    return books


def rows(books: Books) -> list[tuple[Any, ...]]:
    return books.world.connection.execute(ROWS).fetchall()


def outcomes(books: Books, *, full: bool = False) -> list[str]:
    """Those of the closings in a run."""
    return [each.outcome for each in books.run(full=full).closings]


def test_closings_that_are_right_agree_and_the_report_says_from_where_on_it_proves(
    closed: Books,
) -> None:
    """With a late total, too, that has read none of what is closed; and without a warehouse.

    One that is deleted by hand is held night after night, until that is approved.
    """
    world = closed.world
    world.send(1, 2)
    all_have_counted(closed)
    told = reconcile(world)
    assert (told.status, told.wrong) == (0, "")
    assert (
        "2 closings agree; the totals are proven from closing 2, position 100,004, on." in told.said
    )
    flush(world)
    assert world.consumer("late").at.position == 100_004
    assert catch_up(world.consumer("late")) == world.truth
    full = reconcile(world, "--full")
    assert (full.status, full.wrong) == (0, "")
    assert "2 closings agree; the totals are proven from the first ride on." in full.said
    commit, _ = named_ledger(closed)
    for path in (commit.parent).iterdir():
        if path.is_file():
            path.unlink()
    assert outcomes(closed) == [AGREES, AGREES]
    assert last_run(world).status == "agreed"
    alter(world, "DELETE FROM closings WHERE id = 2")
    before, closings = standing(closed), rows(closed)
    for from_the_first in (True, False):
        assert outcomes(closed, full=from_the_first) == [AGREES]
        found = last_run(world)
        assert (found.status, found.held) == ("held", {"closing_changed"})
        assert "closing 2 is gone" in found.about("closing_changed")
        assert (standing(closed), rows(closed)) == (before, closings)
    assert approve(world, last_run(world).id, *REASON).status == 0
    assert closed.run().agrees


# By the ride: it is past both closings, and in the block that the second one cuts, or below both.
EXPECTED = {100_005: [AGREES, WAITS], 4: [WAITS, WAITS]}


@pytest.mark.proves("closings")
def test_once_an_altered_ride_is_approved_its_closing_is_named_and_held(closed: Books) -> None:
    """Before that, the ride is; and all agree once it is put back. No closing changes."""
    right, closings = in_postgres(closed), rows(closed)
    for ride, kinds in ((100_005, (True, False)), (4, (False,))):
        assert outcomes(closed) == [AGREES, AGREES]
        by_hand(closed.world, LONGER.format(ride))
        before = standing(closed)
        for full in kinds:
            assert outcomes(closed, full=full) == EXPECTED[ride]
            run = last_run(closed.world)
            assert (run.status, {*run.rides}) == ("held", {ride})
            assert (standing(closed), rows(closed)) == (before, closings)
            refused = closing(closed.world, "--reopen", "1", *REASON)
            assert (refused.status, standing(closed)) == (2, before)
            assert f"run {run.id} holds something else, too: " in refused.wrong
        by_hand(closed.world, LONGER.format(ride).replace("+", "-"))
        assert in_postgres(closed) == right
    by_hand(closed.world, LONGER.format(4))
    assert approve(closed.world, run.id, *REASON).status == 0
    assert outcomes(closed) == [DIFFERS, DIFFERS]
    found = last_run(closed.world)
    assert (found.status, found.held) == ("held", {"closing_wrong"})
    assert "closing 1 says 10 rides, " in found.about("closing_wrong")
    assert rows(closed) == closings


def test_a_closing_that_is_held_is_not_approved_but_reopened(closed: Books) -> None:
    """With the later one, once, and for a reason.

    Then all totals recount, and another period can be closed. No run has seen this one right.
    """
    world = closed.world
    assert closing(world, "--verify").status == 0
    alter(world, "UPDATE closings SET rides = rides + 1 WHERE id = 2", *REHASH)
    assert outcomes(closed) == [AGREES, DIFFERS]
    assert last_run(world).held == {"closing_wrong"}
    told = closing(world, "--verify")
    assert (told.status, told.wrong) == (1, "")
    assert "it says 15 rides, " in told.said
    assert "the files 14 rides, " in told.said
    refused = approve(world, last_run(world).id, *REASON)
    assert (refused.status, refused.said) == (2, "")
    assert "--reopen" in refused.wrong
    assert "run 2 has found something: closing 2" in closing(world, "--upto", DAYS[1]).wrong
    for options in (["--reopen", "2"], ["--reopen", "2", "--reason", " "], [], ["--list", *REASON]):
        assert closing(world, *options).status == 2
    done = closing(world, "--reopen", "2", "--reason", "\udcff")  # a byte that is no UTF-8
    assert (done.status, done.wrong.count("\n")) == (2, 1)
    assert done.wrong.startswith("not reopened: ")
    done = closing(world, "--reopen", "3", *REASON)
    assert (done.status, done.wrong) == (2, "not reopened: there is no closing 3\n")
    done = closing(world, "--reopen", "1", *REASON)
    assert (done.status, done.wrong) == (0, "")
    assert done.said == "Reopened: 1, 2. Asked for a recount: total consumer0, total consumer1.\n"
    done = closing(world, "--reopen", "2", *REASON)
    assert (done.status, done.wrong) == (2, "not reopened: 2 was reopened before\n")
    for name in (*TOTALS, "late"):
        assert exact(world, world.consumer(name))
    assert closed.run().agrees
    assert closing(world, "--upto", DAYS[1]).status == 0
    first, second, third = closing(world, "--list").said.splitlines()[1:]
    assert first.split()[:3] == ["1", "100,000", "10"]
    assert [REASON[1] in line for line in (first, second, third)] == [True, True, False]
    alter(world, "UPDATE closings SET rides = 7 WHERE id = 3")
    told = closing(world, "--verify")
    assert (told.status, "Closing 3 was altered" in told.said) == (1, True)


def test_after_a_restore_from_before_a_close_nobody_misses_it(closed: Books) -> None:
    """The warehouse is ahead of the database, and its ledger knows the closings."""
    assert closed.run().agrees
    later = "SELECT min(run_id) FROM closings"
    alter(
        closed.world,
        f"DELETE FROM reconciliations WHERE id > ({later})",
        f"CREATE TEMP TABLE lost AS SELECT id FROM runs WHERE id > ({later})",
        "DELETE FROM closings",
        "DELETE FROM runs WHERE id IN (TABLE lost)",
    )
    for _ in range(2):
        result = closed.run()
        assert (result.status, result.closings) == ("agreed", [])
    assert exact(closed.world, closed.world.consumer("late"))
