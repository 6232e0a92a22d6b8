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
from tests.support.completed_runs import REASON, approve, last_run
from tests.support.disasters import flush
from tests.support.jobs import Reconcile
from tests.support.periods import DAYS, three_days
from tests.support.world import catch_up, exact

LONGER = "UPDATE rides SET distance = distance + 1 WHERE id = {}"
ROWS = "SELECT * FROM closings ORDER BY id"
RECOUNTS = "SELECT count(*) FROM checkpoints WHERE recount"


@pytest.fixture
def closed(books: Books, closing: Reconcile) -> Books:
    """Three days, of which two are closed, at the positions 100,000 and 100,004."""
    three_days(books)
    for when in (DAYS[0], "100004"):
        assert closing(books.world, "--upto", when).status == 0
    assert books.run().agrees
    return books


def rows(books: Books) -> list[tuple[Any, ...]]:
    return books.world.connection.execute(ROWS).fetchall()


def outcomes(books: Books, *, full: bool = False) -> list[str]:
    """Those of the closings in a run."""
    return [each.outcome for each in books.run(full=full).closings]


def test_closings_that_are_right_agree_and_the_report_says_from_where_on_it_proves(
    closed: Books, reconcile: Reconcile
) -> None:
    """With a late total, too, that has read none of what is closed; and without a warehouse."""
    closed.world.send(1, 2)
    all_have_counted(closed)
    told = reconcile(closed.world)
    assert (told.status, told.wrong) == (0, "")
    assert (
        "2 closings agree; the totals are proven from closing 2, position 100,004, on." in told.said
    )
    flush(closed.world)
    assert closed.world.consumer("late").at.position == 100_004
    assert catch_up(closed.world.consumer("late")) == closed.world.truth
    full = reconcile(closed.world, "--full")
    assert (full.status, full.wrong) == (0, "")
    assert "2 closings agree; the totals are proven from the first ride on." in full.said
    commit, _ = named_ledger(closed)
    for path in (commit.parent).iterdir():
        if path.is_file():
            path.unlink()
    assert outcomes(closed) == [AGREES, AGREES]


# By the ride: it is below both closings, or past both, and in the block that the second one cuts.
EXPECTED = {4: [WAITS, WAITS], 100_005: [AGREES, WAITS]}


def test_a_ride_that_is_altered_after_a_close_is_named_and_held_and_no_closing_changes(
    closed: Books,
) -> None:
    """And all agree again, once it is put back."""
    right, closings = in_postgres(closed), rows(closed)
    for ride, full in ((4, False), (100_005, True), (100_005, False)):
        by_hand(closed.world, LONGER.format(ride))
        before = standing(closed)
        result = closed.run(full=full)
        assert result.status == "held"
        assert {*last_run(closed.world).rides} == {ride}
        assert [each.outcome for each in result.closings] == EXPECTED[ride]
        assert (standing(closed), rows(closed)) == (before, closings)
        by_hand(closed.world, LONGER.format(ride).replace("+", "-"))
    assert in_postgres(closed) == right
    assert outcomes(closed) == [AGREES, AGREES]


@pytest.mark.proves("closings")
def test_once_an_altered_ride_is_approved_its_closing_is_named_and_held(
    books: Books, closing: Reconcile
) -> None:
    three_days(books)
    assert closing(books.world, "--upto", DAYS[0]).status == 0
    by_hand(books.world, LONGER.format(4))
    assert outcomes(books) == [WAITS]
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    closings = rows(books)
    assert outcomes(books) == [DIFFERS]
    found = last_run(books.world)
    assert (found.status, found.held) == ("held", {"closing_wrong"})
    assert "closing 1 says 10 rides, " in found.about("closing_wrong")
    assert rows(books) == closings


def test_a_closing_that_is_held_is_not_approved_but_reopened(
    books: Books, closing: Reconcile
) -> None:
    """With the later one. Then all totals recount, and another period can be closed."""
    three_days(books)
    world = books.world
    for when in (DAYS[0], "100004"):
        assert closing(world, "--upto", when).status == 0
    alter(world, "UPDATE closings SET rides = rides + 1 WHERE id = 2", *REHASH)
    assert outcomes(books) == [AGREES, DIFFERS]
    assert last_run(world).held == {"closing_wrong"}
    refused = approve(world, last_run(world).id, *REASON)
    assert (refused.status, refused.said) == (2, "")
    assert "--reopen" in refused.wrong
    assert "run 2 has found something: closing 2" in closing(world, "--upto", DAYS[1]).wrong
    done = closing(world, "--reopen", "1", *REASON)
    assert (done.status, done.wrong) == (0, "")
    assert done.said == "Reopened: 1, 2. Asked for a recount: consumer0, consumer1.\n"
    for name in (*TOTALS, "late"):
        assert exact(world, world.consumer(name))
    assert books.run().agrees
    assert closing(world, "--upto", DAYS[1]).status == 0


def test_a_closing_that_is_altered_by_hand_is_named_and_held_until_that_is_approved(
    closed: Books,
) -> None:
    """Here the newest is deleted. Night after night, also by a full run."""
    alter(closed.world, "DELETE FROM closings WHERE id = 2")
    before, closings = standing(closed), rows(closed)
    for full in (True, False):
        assert outcomes(closed, full=full) == [AGREES]
        found = last_run(closed.world)
        assert (found.status, found.held) == ("held", {"closing_changed"})
        assert "closing 2 is gone" in found.about("closing_changed")
        assert (standing(closed), rows(closed)) == (before, closings)
    assert approve(closed.world, last_run(closed.world).id, *REASON).status == 0
    assert closed.run().agrees
    assert closed.run().agrees


def test_a_sum_that_was_altered_before_any_run_has_seen_it_differs_from_the_rides(
    books: Books, closing: Reconcile
) -> None:
    three_days(books)
    assert closing(books.world, "--upto", DAYS[0]).status == 0
    alter(books.world, "UPDATE closings SET rides = rides + 1", *REHASH)
    assert outcomes(books) == [DIFFERS]
    assert last_run(books.world).held == {"closing_wrong"}
    told = closing(books.world, "--verify")
    assert (told.status, told.wrong) == (1, "")
    assert "it says 11 rides, " in told.said
    assert "the files 10 rides, " in told.said
    alter(books.world, "UPDATE closings SET rides = rides - 1", *REHASH)
    assert outcomes(books) == [AGREES]


def test_closings_are_listed_and_reopened_once_and_for_a_reason(
    closed: Books, closing: Reconcile
) -> None:
    world = closed.world
    assert closing(world, "--verify").status == 0
    for options in (["--reopen", "2"], ["--reopen", "2", "--reason", " "], [], ["--list", *REASON]):
        assert closing(world, *options).status == 2
    done = closing(world, "--reopen", "2", "--reason", "\udcff")  # a byte that is no UTF-8
    assert (done.status, done.wrong.count("\n")) == (2, 1)
    assert done.wrong.startswith("not reopened: ")
    done = closing(world, "--reopen", "3", *REASON)
    assert (done.status, done.wrong) == (2, "not reopened: there is no closing 3\n")
    assert closing(world, "--reopen", "2", *REASON).status == 0
    assert world.value(RECOUNTS) == len(TOTALS)
    done = closing(world, "--reopen", "2", *REASON)
    assert (done.status, done.wrong) == (2, "not reopened: 2 was reopened before\n")
    first, second = closing(world, "--list").said.splitlines()[1:]
    assert first.split()[:3] == ["1", "100,000", "10"]
    assert REASON[1] in second
    assert REASON[1] not in first
    alter(world, "UPDATE closings SET rides = 7 WHERE id = 1")
    told = closing(world, "--verify")
    assert told.status == 1
    assert "Closing 1 was altered" in told.said


def test_after_a_restore_from_before_a_close_nobody_misses_it(closed: Books) -> None:
    """The warehouse is ahead of the database, and its ledger knows the closings."""
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
