"""What another writer of the warehouse's table changes is told with its version, and read again.

What does not change rides, as an OPTIMIZE, is nobody's business.
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from analytics import rows
from analytics.look import Look
from analytics.reread import read_again
from analytics.rides import Rides
from analytics.steps import RunStep
from tests.support.attacks import (
    all_have_counted,
    delta,
    in_postgres,
    in_warehouse,
    settled,
    standing,
)
from tests.support.books import Books
from tests.support.completed_runs import last_run, statuses
from tests.support.jobs import reconcile
from unified_log.errors import Unavailable
from unified_log.faults import listening


def add(books: Books, *changes: dict[str, object]) -> None:
    """Append copies of a ride that is there, each with its changes."""
    table = delta(books).to_pyarrow_table()
    [row] = table.slice(0, 1).to_pylist()
    rows = pa.Table.from_pylist([row | each for each in changes], table.schema)
    write_deltalake(delta(books), rows, mode="append")


def add_by_an_operation_of_no_name(books: Books) -> None:
    add(books, {})
    newest, lines = newest_version(books)
    for line in lines:
        line.get("commitInfo", {}).update(operation=None)
    write_version(newest, *lines)


def newest_version(books: Books) -> tuple[Path, list[dict[str, dict[str, object]]]]:
    newest = max((books.rides_on_disk / "_delta_log").glob("*.json"))
    return newest, [json.loads(line) for line in newest.read_text().splitlines()]


def write_version(path: Path, *lines: object) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


# What somebody does, the options of the run that follows, and what it says of the version.
ATTACKS: list[tuple[Callable[[Books], object], list[str], str]] = [
    (lambda books: delta(books).update({"created_at": "created_at + interval '1 day'"}), [], ""),
    (lambda books: delta(books).delete("id = 100004"), ["--full"], ""),
    (lambda books: add(books, {}), [], ""),
    (lambda books: add(books, {"id": 200_011}), [], ""),  # one that is still to come
    (add_by_an_operation_of_no_name, [], " (unreadable)"),
]


def test_what_another_writer_has_changed_is_told_with_its_version_and_read_again(
    books: Books,
) -> None:
    """One version does not say what it is."""
    settled(books)
    before = standing(books)
    for attack, options, how in ATTACKS:
        attack(books)
        version = f"version {delta(books).version()}{how}"
        run = reconcile(books.world, *options)
        assert (run.status, run.wrong) == (1, "")
        assert version in run.said
        assert last_run(books.world).status == "wrong"
        assert standing(books) == before
    assert reconcile(books.world).status == 0


def test_what_another_writer_has_only_rearranged_is_read_on(books: Books) -> None:
    """It says that it changed no rides. Files without statistics, one or all, are replaced.

    So are rides without ids: no block has them, so nobody would compare them.
    """
    settled(books)
    books.world.send(5)
    all_have_counted(books)
    assert books.run().agrees
    files = len(delta(books).file_uris())
    assert delta(books).optimize.compact()["numFilesRemoved"] == files > 1
    for options in ({}, {"full": True}):
        books.world.send(5)
        all_have_counted(books)
        result = books.run(**options)
        assert (result.status, result.notes) == ("agreed", [])
        assert in_warehouse(books) == in_postgres(books)
    for which in (slice(0, 1), slice(None)):
        rearrange(books, which)
        is_rebuilt(books, "has no statistics")
    add(books, {"id": None}, {"id": 100_004})
    is_rebuilt(books, "has rides without ids")
    again = books.run()
    assert (again.status, again.notes) == ("agreed", [])


def is_rebuilt(books: Books, why: str) -> None:
    result = books.run()
    [note] = result.notes
    assert f"{why}): it is rebuilt" in note
    assert result.status == "agreed"
    assert in_warehouse(books) == in_postgres(books)


def rearrange(books: Books, which: slice) -> None:
    """Copy files, and name the copies in place of the files, with nothing about their rides."""
    newest, _ = newest_version(books)
    lines: list[object] = [{"commitInfo": {"operation": "OPTIMIZE"}}]
    for file in books.warehouse.table.files()[which]:
        path = books.rides_on_disk / file.path
        copy = path.with_name(f"copy-{path.name}")
        copy.write_bytes(path.read_bytes())
        same = {"partitionValues": {"day": str(file.day)}, "dataChange": False, "size": file.size}
        renamed = str(Path(file.path).with_name(copy.name))
        lines += [
            {"remove": {"path": file.path, "deletionTimestamp": 0, **same}},
            {"add": {"path": renamed, "modificationTime": 0, "stats": "{}", **same}},
        ]
    write_version(newest.with_name(f"{int(newest.stem) + 1:020}.json"), *lines)


def test_a_file_that_goes_while_its_blocks_are_read_again_ends_the_run_in_a_sentence(
    books: Books,
) -> None:
    settled(books)
    [file, *_] = books.warehouse.table.files()
    look = Look(file.first, file.last, file.last, "", "", "", "", (), (), rows.Differences())
    (books.rides_on_disk / file.path).unlink()
    world = books.world
    rides = Rides(
        world.connection, books.spark, books.warehouse, world.postgres_url,
        lambda _: nullcontext(), writes=True,
    )  # fmt: skip
    with pytest.raises(Unavailable, match="is missing"):
        read_again(rides, [look])


@pytest.mark.proves("other-writers")
def test_what_another_writer_commits_during_a_run_is_not_built_upon(books: Books) -> None:
    settled(books)
    before = standing(books)

    def meanwhile(step: object) -> None:
        if step is RunStep.BEFORE_PUBLISH:
            add(books, {})

    for full in (False, True):
        books.world.send(5)
        with pytest.raises(Unavailable), listening(meanwhile):
            books.run(full=full)
        version = delta(books).version()
        result = books.run(full=full)
        assert statuses(books.world)[-2:] == ["failed", "wrong"]
        assert f"version {version}" in f"{result.notes} {last_run(books.world).findings}"
        assert in_warehouse(books) == in_postgres(books)
        assert standing(books)[1:] == before[1:]
