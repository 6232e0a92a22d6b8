"""What was changed in Postgres is held as well where the warehouse can't be read, or is gone."""

import shutil
from dataclasses import replace

from analytics.evidence import Known
from tests.support.attacks import (
    all_have_counted,
    by_hand,
    in_postgres,
    in_warehouse,
    settled,
    totals_now,
)
from tests.support.books import Books
from tests.support.completed_runs import REASON, last_run
from tests.support.jobs import approve

# Two rides of one block: it has the same metres, so that no total knows of it.
SWAP = """
    UPDATE rides SET distance = other.distance FROM rides other
    WHERE (rides.id, other.id) IN ((100004, 100007), (100007, 100004))
"""


def lose_the_newest_file(books: Books) -> None:
    newest = max(books.warehouse.table.files(), key=lambda file: file.last)
    (books.rides_on_disk / newest.path).unlink()


def garble_the_newest_file(books: Books) -> None:
    """It keeps its size."""
    newest = max(books.warehouse.table.files(), key=lambda file: file.last)
    path = books.rides_on_disk / newest.path
    path.write_bytes(path.read_bytes()[::-1])


def test_rides_that_are_held_stay_so_without_a_warehouse_until_they_are_approved(
    books: Books,
) -> None:
    """A full run without the log, or a file, compares Postgres with the ledger.

    It replaces nothing: the files that are left have the rides as they were.
    """
    settled(books)
    by_hand(books.world, SWAP, "DELETE FROM receipts WHERE ride_id = 100007")
    before, files = totals_now(books), books.warehouse.table.files()
    log, aside = (books.rides_on_disk / name for name in ("_delta_log", "_broken"))
    log.rename(aside)
    is_held(books, full=True)
    aside.rename(log)
    for damage in (garble_the_newest_file, lose_the_newest_file):
        damage(books)
        is_held(books, full=True)
        assert totals_now(books) == before
        assert books.warehouse.table.files() == files
    shutil.rmtree(books.on_disk)
    for full in (False, True):
        is_held(books, full=full)
    assert totals_now(books) == before, "nor is a receipt delivered again"
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().published
    assert in_warehouse(books) == in_postgres(books)
    all_have_counted(books)
    assert books.run().status == "agreed"


def test_nobody_remembers_what_neither_the_files_nor_the_ledger_say() -> None:
    known = Known(is_witness=True, extent=7)
    assert known.remembers == 7
    assert replace(known, is_witness=False).remembers == 0


def is_held(books: Books, *, full: bool) -> None:
    result = books.run(full=full)
    assert (result.status, result.published) == ("held", False)
    assert last_run(books.world).held >= {"rides_changed"}
