"""What somebody can do to rides, totals and the warehouse past the application.

All of it is done to books that are right: `settled` makes them.
"""

import random
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import dataset

from analytics import parquet
from analytics.store import Store
from analytics.warehouse import Warehouse
from tests.support.books import Books
from tests.support.rollup import hurry, lead
from tests.support.world import World

PLACES = 10  # rides in each block of ids
BLOCK = 100_000  # ids
BLOCKS = 3
TOTALS = ("consumer0", "consumer1")

DELIVERED = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, 'delivered', 1, now(), now() FROM rides ON CONFLICT DO NOTHING
"""
RECEIPTS_ARE_COMPLETE = """
    UPDATE receipts_state SET (inbox_to, complete_to) = (
        SELECT last_sent_id, last_sent_id FROM streamer_state
    )
"""
ASKED = """
    SELECT (SELECT count(*) FROM resets) + (SELECT count(*) FROM recomputations)
         + (SELECT count(*) FROM checkpoints WHERE recount)
         + (SELECT set_backs FROM receipts_state)
"""
# As `python -m consumers.remove` does it; the reader's name.
REMOVE = """
    WITH gone AS (DELETE FROM checkpoints WHERE name = %s RETURNING kind, name, position)
    INSERT INTO removed_readers (kind, name, position) SELECT kind, name, position FROM gone
"""
TOTALS_NOW = "SELECT name, total_distance FROM consumer_states ORDER BY name"

Taken = tuple[datetime, Decimal]  # when, and how many metres
Rides = dict[int, Taken]  # by their ids


def settled(books: Books, blocks: int = BLOCKS) -> None:
    """Ten rides in each block, which totals, minutes and receipts have; a run agrees."""
    counted(books, blocks)
    assert books.run().agrees


def counted(books: Books, blocks: int = BLOCKS) -> None:
    """The same before any run.

    Ride 100,004 is the fourth of the second block. No pattern is in the distances, so that a file's
    size does not depend on them.
    """
    chance = random.Random(1)
    for block in range(blocks):
        millimetres = (chance.randrange(10**6, 10**9) for _ in range(PLACES))
        books.world.send(*(f"{each / 1000:.3f}" for each in millimetres))
        if block < blocks - 1:
            books.skip_ids(BLOCK - PLACES)
    all_have_counted(books)


def all_have_counted(books: Books, *names: str) -> None:
    """Let the totals, the rollup and the receipts come to the last ride."""
    for name in names or TOTALS:
        books.caught_up(name)
    hurry(lead(books.world))
    by_hand(books.world, DELIVERED, RECEIPTS_ARE_COMPLETE)


def by_hand(world: World, *statements: str) -> None:
    """What somebody types into psql."""
    for statement in statements:
        world.connection.execute(statement)


def in_postgres(books: Books) -> Rides:
    rows = books.world.connection.execute("SELECT id, created_at, distance FROM rides")
    return {number: (at, metres) for number, at, metres in rows}


def in_warehouse(books: Books) -> Rides:
    """As delta-rs reads it, not we."""
    rows = delta(books).to_pyarrow_table().to_pylist()
    found = {row["id"]: (row["created_at"], row["distance"]) for row in rows}
    assert len(found) == len(rows), "a ride is there twice"
    return found


def delta(books: Books) -> DeltaTable:
    return DeltaTable(f"{books.root}/rides")


class Standing(NamedTuple):
    """What a repair may change, and how many repairs have been asked for."""

    warehouse: Rides
    totals: list[tuple[str, Decimal]]
    asked: int


def standing(books: Books) -> Standing:
    return Standing(in_warehouse(books), *totals_now(books))


def totals_now(books: Books) -> tuple[list[tuple[str, Decimal]], int]:
    """The part of it that needs no warehouse that can be read."""
    totals = books.world.connection.execute(TOTALS_NOW).fetchall()
    return totals, books.world.value(ASKED)


def alter_in_file(books: Books, ride: int, metres: int) -> None:
    """Make a ride longer in the warehouse, in a file that keeps its name and size."""
    base = books.rides_on_disk
    how = {"partitioning": parquet.by_day(), "partition_base_dir": str(base)}
    for file in Warehouse(books.root).table.files():  # others are there that count no longer
        path = base / file.path
        rides = dataset.dataset(str(path), parquet.schema(), **how).to_table()
        ids = rides["id"].to_pylist()
        if ride in ids:
            distances = rides["distance"].to_pylist()
            distances[ids.index(ride)] += metres
            column = pa.array(distances, rides.schema.field("distance").type)
            _write_over(path, rides.set_column(2, "distance", column), books.world.folder / "other")
            return
    raise AssertionError(f"no file has ride {ride}")


def _write_over(path: Path, rides: pa.Table, folder: Path) -> None:
    size = path.stat().st_size
    folder.mkdir(exist_ok=True)
    [file] = parquet.write(rides.to_batches(), Store(str(folder)))
    (folder / file.path).rename(path)
    assert path.stat().st_size == size, "the log would tell that it is another file"


def named_ledger(books: Books) -> tuple[Path, Path]:
    """The newest commit that names a ledger, and that ledger's file."""
    folder = books.rides_on_disk
    for commit in sorted((folder / "_delta_log").glob("*.json"), reverse=True):
        for line in commit.read_bytes().splitlines():
            said = msgspec.json.decode(line).get("commitInfo", {}).get("reconciliation")
            if said:
                return commit, folder / "_ledgers" / f"{said['ledger']}.json"
    raise AssertionError("no commit names a ledger")
