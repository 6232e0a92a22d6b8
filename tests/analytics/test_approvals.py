"""What is held waits for a person, who takes it from Postgres, or puts the rides back."""

import subprocess
import sys

import pytest

from analytics.prerequisites import PACKAGES
from analytics.reconcile import the_only_run
from tests.support.attacks import (
    BLOCK,
    TOTALS,
    all_have_counted,
    by_hand,
    in_postgres,
    in_warehouse,
    settled,
    standing,
)
from tests.support.books import MILLIMETRE, Books
from tests.support.completed_runs import REASON, last_run
from tests.support.jobs import approve
from tests.support.rollup import send_at
from tests.support.world import World

# With their receipts, as somebody who is asked to forget a customer would do it.
DELETE_RIDES = """
    WITH gone AS (DELETE FROM rides WHERE id IN (4, 100004) RETURNING id)
    DELETE FROM receipts USING gone WHERE ride_id = gone.id
"""
CHANGE_A_RIDE = """
    UPDATE rides SET distance = 7.007, created_at = created_at - interval '1 day'
    WHERE id = 100007
"""
LENGTHEN = "UPDATE rides SET distance = distance + 1 WHERE id IN ({})"
ADD_A_RIDE = f"""
    INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES ({BLOCK + 7}, 7)
"""
SHORTEN = LENGTHEN.replace("+", "-")
USED_BY = "SELECT used_by FROM approvals"
WITHOUT_PACKAGES = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({PACKAGES}))
runpy.run_module("analytics.approve", run_name="__main__")
"""


def held(books: Books, *statements: str) -> int:
    """Somebody changes rides, and a run finds it; returns the run's number."""
    settled(books)
    by_hand(books.world, *statements)
    assert books.run().status == "held"
    return last_run(books.world).id


def on_days(books: Books, days: int) -> None:
    """A ride on each, in a block of its own; a run agrees."""
    for day in range(days):
        send_at(books.world, (f"2026-{1 + day // 28:02}-{day % 28 + 1:02} 12:00+00", 5))
        books.skip_ids(BLOCK)
    all_have_counted(books)
    assert books.run().agrees


def test_an_approval_is_for_what_the_next_run_finds_wherever_chance_has_it_look(
    books: Books,
) -> None:
    """Somebody puts a time zone right, in more blocks than a run looks at of itself."""
    on_days(books, 20)
    by_hand(books.world, "UPDATE rides SET created_at = created_at - interval '1 hour'")
    assert books.run().status == "held"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run(chance=2).approval


def test_an_approval_is_for_all_rides_that_were_altered_though_but_a_minute_shows_one(
    books: Books,
) -> None:
    """A late ride of that minute has a run compare it, in a block at which it did not look."""
    on_days(books, 40)
    hour = "UPDATE rides SET created_at = created_at - interval '1 hour' WHERE id IN ({}, {})"
    ids = sorted(in_postgres(books))
    by_hand(books.world, hour.format(ids[20], ids[10]))
    send_at(books.world, ("2026-01-21 12:00+00", 5))
    all_have_counted(books)
    assert books.run(chance=3).status == "held"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run(chance=3).approval


def refused(world: World, run: int, *options: str) -> None:
    """Fails if that run may be approved."""
    refusal = approve(world, run, *options)
    assert (refusal.status, refusal.said, refusal.wrong.count("\n")) == (2, "", 1)
    assert world.value("SELECT count(*) FROM approvals") == 0


def test_only_the_last_run_is_approved_if_it_holds_something_and_for_a_reason_and_then_all_agrees(
    books: Books,
) -> None:
    """And while no other is in progress, which would be the next one.

    Whatever new rides come meanwhile, all rides are taken from Postgres then.
    """
    world = books.world
    first = held(books, DELETE_RIDES, CHANGE_A_RIDE)
    for number in (first - 1, first + 1, 999):  # the one that agreed, and two that there are not
        refused(world, number, *REASON)
    for reason in ("", " \t", "\udcff"):  # and a byte that is no UTF-8
        refused(world, first, "--reason", reason)
    assert books.run().status == "held"
    refused(world, first, *REASON)
    with the_only_run(world.postgres_url):
        refused(world, first + 1, *REASON)
    # Without a package of the reconciliation: a person does it wherever the services run.
    command = [sys.executable, "-c", WITHOUT_PACKAGES, str(first + 1), *REASON]
    at = {"DATABASE_URL": world.postgres_url}
    done = subprocess.run(command, env=at, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert world.value("SELECT run_id FROM approvals") == first + 1
    world.send(5)
    all_have_counted(books)
    checked = standing(books)
    books.run(check=True)
    assert standing(books) == checked
    result = books.run()
    assert (result.status, sorted(result.resets)) == ("wrong", [*TOTALS])
    assert world.value(USED_BY) == last_run(world).id
    assert in_warehouse(books) == in_postgres(books)
    all_have_counted(books)
    for name in TOTALS:
        assert world.standing(name) == world.truth
    assert books.run(full=True).status == "agreed"


@pytest.mark.proves("approved")
def test_an_approval_of_what_has_changed_since_is_not_used(books: Books) -> None:
    """Nor of what is found once more, after a run that found nothing: nobody has said that."""
    run = held(books, LENGTHEN.format(100_007))
    assert approve(books.world, run, *REASON).status == 0
    finds(books, SHORTEN.format(100_007), "agreed")
    finds(books, LENGTHEN.format(100_007), "held")
    assert approve(books.world, run + 2, *REASON).status == 0
    finds(books, LENGTHEN.format(200_001), "held")
    assert books.world.connection.execute(USED_BY).fetchall() == [(None,)] * 2


def finds(books: Books, change: str, status: str) -> None:
    """Somebody changes rides, and a run that finds this does nothing."""
    by_hand(books.world, change)
    before = standing(books)
    assert books.run().status == status
    assert standing(books) == before


def test_an_approval_is_used_once(books: Books) -> None:
    """Also where exactly the same is found again: no other total testifies against this one."""
    books.world.send(1, 2, 3)
    books.caught_up()
    books.tamper("consumer0", MILLIMETRE)
    assert books.run().status == "held"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().resets == ["consumer0"]
    assert books.caught_up() == books.world.truth
    books.tamper("consumer0", MILLIMETRE)
    again = books.run()
    assert (again.status, again.resets) == ("held", [])


def test_a_ride_that_was_added_in_a_block_without_any_is_proven_by_itself_once_approved(
    books: Books,
) -> None:
    """Before, one digest was of it and of the next block."""
    settled(books, blocks=1)
    books.skip_ids(2 * BLOCK)
    books.world.send(1)
    all_have_counted(books)
    assert books.run().agrees
    by_hand(books.world, ADD_A_RIDE)
    assert books.run().status == "held"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().approval
    all_have_counted(books)
    for full in (False, True):
        assert books.run(full=full).agrees
        committed = books.warehouse.committed_run()
        assert committed
        blocks = books.warehouse.table.ledger(committed.ledger).blocks
        assert not any(block.is_several for block in blocks)


def test_rides_that_were_put_back_are_as_they_were_and_all_agrees(books: Books) -> None:
    settled(books)
    right = in_postgres(books)
    by_hand(books.world, "DELETE FROM rides WHERE id IN (4, 100004)", CHANGE_A_RIDE)
    assert books.run(full=True).status == "held"
    put_back = approve(books.world, last_run(books.world).id, "--put-back")
    assert (put_back.status, put_back.wrong) == (0, "")
    assert put_back.said.count("OVERRIDING SYSTEM VALUE") >= 1
    assert in_postgres(books) != right  # it only prints
    psql = str(books.world.postgres.programs / "psql")
    command = [psql, "-X", "-v", "ON_ERROR_STOP=1", "-1", books.world.postgres_url]
    subprocess.run(command, input=put_back.said, text=True, capture_output=True, check=True)
    assert in_postgres(books) == right
    assert books.run().status == "agreed"
    assert standing(books).asked == 0
