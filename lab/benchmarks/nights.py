"""A thousand nights of one warehouse: a night after them beside one after a single full run.

The nights themselves are made without Spark: of the rest, nothing is left out.
"""

import os
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa

from analytics import parquet
from analytics.cells import Cell
from analytics.freeze import freeze
from analytics.ledger import Ledger, Owner
from analytics.parquet import File
from analytics.tidying import tidy
from analytics.warehouse import Warehouse
from lab.benchmarks import reconcile, rides
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from rocket_rides import database

NIGHTS = 1000
PARTS, RIDES = 5, 400  # files of a night, the last of them of the next day; and rides in each
NEW = 10_000  # rides that are new to the nights that are compared
COMPARED = 3
A_DAY = 86_400.0  # in seconds
SHOWN = 50  # nights at either end
METRE = Decimal("1.001")
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
SAME_RIDES = """
    INSERT INTO rides (distance, created_at)
    SELECT %s, %s + make_interval(days => (number / %s + (number %% %s / %s)::int)::int)
    FROM generate_series(0, %s - 1) number
"""


def measure(stand: Stand) -> list[Figure]:
    """What a night costs, and what a thousand leave in the folder."""
    old, young = stand.folder / "nights", stand.folder / "young"
    with database.connect(stand.postgres.url, "benchmark") as connection:
        night = PARTS * RIDES
        of_next_day = (PARTS - 1) * RIDES
        values = [METRE, NOON, night, night, of_next_day, NIGHTS * night]
        connection.execute(SAME_RIDES, values)
        connection.execute(rides.SENT)
        seconds = _nights(stand, connection, old)
        files = [path for path in old.rglob("*") if path.is_file()]
        counted = [float(len(Warehouse(old).table.files()))]
        size = sum(path.stat().st_size for path in files) / 1000
        stand.say("nights after one, and after a thousand")
        reconcile.run(stand, young)
        last = Figure(
            "A night after 1,000",
            "s",
            "after a full run",
            Goal("ratio", "<=", 1.1),
        )
        for _ in range(COMPARED):
            rides.insert(connection, NEW)
            last.limits.append(reconcile.run(stand, young)[0])
            last.runs.append(reconcile.run(stand, old)[0])
    return [
        last,
        Figure(
            "Of it, all but Spark's part: the last 50",
            "ms",
            "the first 50",
            runs=[1000 * each for each in seconds[-SHOWN:]],
            limits=[1000 * each for each in seconds[:SHOWN]],
        ),
        Figure("Files that count after 1,000 nights", "files", runs=counted),
        Figure("All files in the folder", "files", runs=[float(len(files))]),
        Figure("Their size", "kB", runs=[size]),
    ]


def _nights(stand: Stand, connection: psycopg.Connection, folder: Path) -> list[float]:
    """How long each took."""
    seconds, ledger = [], Ledger()
    owner = freeze(connection).history.owner(0)
    for number in range(NIGHTS):
        if number % 100 == 0:
            stand.say(f"night {number + 1} of {NIGHTS}")
        took, ledger = _night(folder, ledger, owner, number)
        seconds.append(took)
    return seconds


def _night(folder: Path, base: Ledger, owner: Owner, number: int) -> tuple[float, Ledger]:
    """As long ago as it would have been: its seconds, and what the warehouse holds then."""
    warehouse = Warehouse(folder)
    warehouse.make_ready()
    written = [
        _write(warehouse, NOON + timedelta(number + part // (PARTS - 1)), base, part)
        for part in range(PARTS)
    ]
    cells, files = [cell for cell, _ in written], [file for _, found in written for file in found]
    at = datetime.now(UTC) - timedelta(NIGHTS - 1 - number)
    started = time.perf_counter()
    warehouse.owners()
    warehouse.files_of(base.blocks[-1:])
    ledger = base.extended(cells[-1].last, cells)
    placed = warehouse.place(files, rebuilding=not base.last_ride_id)
    warehouse.publish(placed, base.last_ride_id, ledger, owner)
    tidy(warehouse, at)
    seconds = time.perf_counter() - started
    for path in (folder / "rides").rglob("*.*"):
        if path.stat().st_mtime > at.timestamp() + A_DAY:
            os.utime(path, (at.timestamp(), at.timestamp()))
    return seconds, ledger


def _write(warehouse: Warehouse, at: datetime, base: Ledger, part: int) -> tuple[Cell, list[File]]:
    """A file, as a task of Spark's would write it."""
    first, schema = base.last_ride_id + part * RIDES + 1, parquet.schema()
    columns = [[*range(first, first + RIDES)], *([each] * RIDES for each in (at, METRE, at.date()))]
    rides = pa.record_batch(
        [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)],
        schema=schema,
    )
    cell = Cell(first, first + RIDES - 1, RIDES, METRE * RIDES)
    return cell, parquet.write([rides], warehouse.make_room())
