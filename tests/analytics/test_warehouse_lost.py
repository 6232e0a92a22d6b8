"""What was changed in Postgres is held as well where the warehouse can't be read, or is gone."""

import shutil

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
    """A full run that can't read a file, or misses one, compares Postgres with the ledger.

    It replaces nothing: the files that are left have the rides as they were.
    """
    settled(books)
    before, files = totals_now(books), books.warehouse.table.files()
    by_hand(books.world, SWAP)
    for damage in (garble_the_newest_file, lose_the_newest_file):
        damage(books)
        is_held(books, full=True)
        assert totals_now(books) == before
        assert books.warehouse.table.files() == files
    shutil.rmtree(books.on_disk)
    for full in (False, True):
        is_held(books, full=full)
    assert approve(books.world, last_run(books.world).id, *REASON).status == 0
    assert books.run().published
    assert in_warehouse(books) == in_postgres(books)
    all_have_counted(books)
    assert books.run().status == "agreed"


def is_held(books: Books, *, full: bool) -> None:
    result = books.run(full=full)
    assert (result.status, result.published) == ("held", False)
    assert last_run(books.world).held >= {"rides_changed"}
