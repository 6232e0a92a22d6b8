"""The warehouse: each ride is in it once, whatever died, and it is checked against Postgres."""

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars
import psycopg
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import ArithmeticException

from analytics.cells import BLOCK, cells
from analytics.extract import cut_into_ranges
from analytics.steps import Step
from rocket_rides.errors import Unavailable
from rocket_rides.faults import InjectedCrash, crash_at, listening
from tests.support.books import MILLIMETRE, Books, exact, tally

LONG_AGO = "timestamptz '2026-01-01 12:00+00'"


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("step", Step)
def test_a_crash_at_any_step_leaves_nothing_that_counts_twice_or_is_missed(
    books: Books, step: Step, full: bool
) -> None:
    books.add(*range(1, 8))
    books.add_many(30_000, at=LONG_AGO)  # in two files, which are merged
    books.claim("consumer0", 3, drift=MILLIMETRE)
    books.run()
    books.add("10.001", "20.002")
    books.add_many(1, at=LONG_AGO)
    with pytest.raises(InjectedCrash), crash_at(step):
        books.job().run_once(full=full)
    books.add("30.003")
    result = books.run()
    assert books.in_warehouse() == books.in_postgres()
    assert result.total == tally(30_011, exact(books.world, 40_000))
    assert [c.drift for c in result.consumers] == [MILLIMETRE]
    assert not (books.warehouse.folder / ".staging").exists()
    assert books.caught_up() == books.world.truth


def test_a_night_reads_the_new_rides_only(books: Books) -> None:
    books.add(1, 2, 3)
    books.run()
    books.world.connection.execute("UPDATE rides SET distance = 99 WHERE id <= 3")
    books.add(4, 5)
    result = books.run(check=True)
    assert result.new == tally(2, 9)
    assert result.total == tally(5, 15)  # of what was there, only the warehouse was asked


def test_a_night_lists_the_days_that_it_verifies_however_long_history_is(books: Books) -> None:
    days = 40
    for day in range(days):
        books.add_many(10, at=f"'2026-01-01 12:00+00'::timestamptz + interval '{day} days'")
        books.skip_ids(BLOCK)
    drawn = books.world.value("SELECT last_value FROM log_position")
    books.skip_ids(BLOCK - 1 - drawn % BLOCK)  # the next one is the last of its block
    books.add_many(1, at="timestamptz '2026-03-01 12:00+00'")
    books.run()
    warehouse = books.warehouse
    blocks = warehouse.ledger().blocks
    assert len(blocks) == len({file.day for file in warehouse.table.files()}) == days + 1
    assert [file.first for file in warehouse.files_of(blocks[-1:])] == [blocks[-1].upto]
    wanted = [blocks[3], blocks[30]]
    rides = warehouse.read(books.spark, warehouse.files_of(wanted))
    listed = {name.split("/day=")[1].partition("/")[0] for name in rides.inputFiles()}
    assert listed == {"2026-01-04", "2026-01-31"}
    assert rides.count() == sum(block.rides for block in wanted)
    # Nor is anything overlooked: all days are what all blocks come to.
    assert books.in_warehouse() == books.in_postgres()


def test_a_ride_changed_by_hand_is_reported_and_resets_nobody(books: Books) -> None:
    books.add_many(150_000, at="timestamptz '2026-01-01 12:00+00'")
    books.run()
    books.world.connection.execute("UPDATE rides SET distance = 7 WHERE id = 120000")
    changed = 7 - (1 + Decimal(120_000 % 977)) / 1000
    books.add(1, 2)
    books.claim("consumer0", 150_000)
    result = books.run()
    assert not result.agrees
    [mismatch] = result.mismatches
    assert (mismatch.after, mismatch.upto) == (100_000, 150_000)
    assert mismatch.postgres.distance - mismatch.warehouse.distance == changed
    assert (result.reconciliation, result.resets) == (None, [])
    assert books.world.value("SELECT count(*) FROM resets") == 0

    rebuilt = books.run(full=True)
    assert [(m.after, m.upto) for m in rebuilt.mismatches] == [(100_000, 150_000)]
    assert [c.wrong for c in rebuilt.consumers] == [False]  # it was written down after the change
    assert books.in_warehouse() == books.in_postgres()
    assert books.run().agrees


def test_full_repairs_who_counted_a_ride_that_was_changed_later(books: Books) -> None:
    books.add(1, 2, 3)
    books.caught_up()
    books.run()
    books.world.connection.execute("UPDATE rides SET distance = 7 WHERE id = 2")
    assert books.run().resets == []
    assert books.run(full=True).resets == ["consumer0"]
    assert books.caught_up() == books.world.truth


@pytest.mark.parametrize(
    "by_hand",
    [
        "DELETE FROM rides WHERE id = 2",
        "INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (100, 1)",
        "WITH gone AS (DELETE FROM rides WHERE id = 1007)"
        " INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (1006, 7)",
    ],
)
def test_rides_deleted_and_smuggled_in_are_noticed(books: Books, by_hand: str) -> None:
    books.add(*range(1, 7))
    books.skip_ids(1000)
    books.add(7)
    books.run()
    books.world.connection.execute(by_hand)
    assert [(m.after, m.upto) for m in books.run().mismatches] == [(0, 1007)]


def test_a_warehouse_that_was_deleted_is_rebuilt_and_that_is_said(books: Books) -> None:
    books.add(1, 2, 3)
    assert books.run().notes == []
    shutil.rmtree(books.warehouse.folder)
    result = books.run()
    assert "is gone: it is rebuilt" in result.notes[0]
    assert result.total == result.new == tally(3, 6)
    assert books.in_warehouse() == books.in_postgres()


def log_of(books: Books) -> list[Path]:
    """The log's files, oldest first, without which no version can be read."""
    return sorted((books.warehouse.table.folder / "_delta_log").glob("*.json"))


def tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-9])


@pytest.mark.parametrize("damage", [Path.unlink, tear])
def test_a_log_that_lost_a_night_is_noticed_and_all_is_rebuilt(
    books: Books, damage: Callable[[Path], None]
) -> None:
    for distance in (1, 2, 3):
        books.add(distance)
        books.run()
    for file in (books.warehouse.table.folder / "_delta_log").glob("*checkpoint*"):
        file.unlink()
    damage(log_of(books)[-2])
    result = books.run()
    assert "broken" in result.notes[0]
    assert result.total == tally(3, 6)
    assert books.in_warehouse() == books.in_postgres()
    assert books.run().notes == []


@pytest.mark.parametrize("left", [b"", b'{"commitInfo":{"timest', bytes(100)])
def test_a_commit_that_did_not_reach_the_disk_leaves_nothing_that_counts(
    books: Books, left: bytes
) -> None:
    """As after a loss of power: the run's row and its ledger can't be there yet."""
    books.add(1, 2)
    books.run()
    newest = log_of(books)[-1]
    newest.with_name(f"{int(newest.stem) + 1:020}.json").write_bytes(left)
    books.add(3)
    result = books.run()
    assert ["broken" in note for note in result.notes] == ([True] if left else [])
    assert result.total == tally(3, 6)
    assert books.in_warehouse() == books.in_postgres()
    assert books.run().notes == []


def set_back(books: Books) -> None:
    """Remove the newest night, as if the folder came from a backup."""
    for file in (books.warehouse.table.folder / "_delta_log").glob("*checkpoint*"):
        file.unlink()
    while b"reconciliation" not in (newest := log_of(books)[-1]).read_bytes():
        newest.unlink()  # what was merged after it
    newest.unlink()


def test_a_warehouse_that_was_set_back_by_a_night_continues_from_there(books: Books) -> None:
    books.add_many(30_000, at=LONG_AGO)
    books.run()
    books.add(1, 2)
    books.run()
    before = books.warehouse.ledger()
    set_back(books)
    told = books.warehouse.ledger()
    assert books.run(check=True).agrees
    result = books.run()
    assert (result.notes, result.agrees) == ([], True)
    assert result.new.rides == before.total.rides - told.total.rides == 2
    assert books.in_warehouse() == books.in_postgres()
    assert books.warehouse.ledger().blocks == before.blocks


def say_another_run(said: dict[str, Any]) -> None:
    said["ledger"]["run"] = 1


def say_more_rides(said: dict[str, Any]) -> None:
    """In sums that agree with one another."""
    ledger = said["ledger"]
    [block] = ledger["blocks"]
    block["rides"] = ledger["total"][0] = 3


def say_nothing_that_is_a_number(said: dict[str, Any]) -> None:
    said["ledger"]["total"] = [1, "1e999999999"]


@pytest.mark.parametrize("lie", [say_another_run, say_more_rides, say_nothing_that_is_a_number])
def test_a_ledger_that_is_not_the_tables_is_not_believed(
    books: Books, lie: Callable[[dict[str, Any]], None]
) -> None:
    for distance in (1, 2):
        books.add(distance)
        books.run()
    newest = log_of(books)[-1]
    lines = [json.loads(line) for line in newest.read_text().splitlines()]
    [info] = [line["commitInfo"] for line in lines if "commitInfo" in line]
    lie(info["reconciliation"])
    newest.write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = books.run()
    assert "broken" in result.notes[0]
    assert result.total == tally(2, 3)
    assert books.in_warehouse() == books.in_postgres()
    assert books.run().notes == []


def test_any_engine_that_reads_delta_tables_finds_the_same_rides(books: Books) -> None:
    """In files that tasks wrote, and in one that was merged. Each engine has its own reader."""
    books.add_many(30_000, at=LONG_AGO)
    books.run()
    books.add(1, 2, "0.001", "999999.999")
    books.run()
    rides = books.warehouse.table.folder
    through_polars = (
        polars.scan_delta(str(rides))
        .select(polars.len(), polars.col("id").n_unique().alias("ids"), polars.sum("distance"))
        .collect()
    )
    through_delta_rs = (
        QueryBuilder()
        .register("rides", DeltaTable(rides))
        .execute("SELECT count(*) n, count(DISTINCT id) ids, sum(distance) metres FROM rides")
        .read_all()
    )
    [of_polars] = through_polars.rows()
    [of_delta_rs] = zip(*(column.to_pylist() for column in through_delta_rs.columns), strict=True)
    assert of_polars == of_delta_rs == books.in_warehouse() == books.in_postgres()
    by_day = polars.scan_delta(str(rides)).group_by("day").agg(polars.len()).collect()
    assert dict(by_day.rows())[date(2026, 1, 1)] == 30_000


def test_a_file_that_no_night_has_named_is_not_read(books: Books) -> None:
    books.add(1, 2, 3)
    books.run()
    [file] = parquet(books)
    shutil.copy(file, file.with_name("another.parquet"))
    assert books.in_warehouse() == books.in_postgres()
    assert books.run(full=True).agrees


def parquet(books: Books) -> list[Path]:
    return sorted(books.warehouse.table.folder.glob("day=*/*.parquet"))


def spoil(file: Path) -> None:
    file.write_bytes(b"PAR1" + file.read_bytes()[4:][::-1])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (empty, "has 0 bytes"),
        (cut_short, "bytes, not"),
        (Path.unlink, "is missing"),
        (spoil, "Parquet"),
    ],
)
def test_a_damaged_warehouse_is_refused_with_the_way_out(
    books: Books, damage: Callable[[Path], None], what: str
) -> None:
    books.add(1, 2, 3)
    books.run()
    damage(parquet(books)[0])
    with pytest.raises(Unavailable, match=f"can't be read .*{what}.* --full rebuilds it"):
        books.run()
    result = books.run(full=True)
    assert "can't be read" in result.notes[0]
    assert result.agrees
    assert books.in_warehouse() == books.in_postgres()


def test_full_empties_a_warehouse_of_rides_that_are_all_gone(books: Books) -> None:
    books.add(1, 2, 3)
    books.run()
    books.world.connection.execute("DELETE FROM rides")
    assert [m.postgres for m in books.run(full=True).mismatches] == [tally(0, 0)]
    assert books.in_warehouse() == (0, 0, Decimal(0))
    assert books.run().agrees


def test_the_rides_are_those_of_the_table_that_the_driver_sees(books: Books) -> None:
    books.add(1, 2, 3)
    job = books.job()
    job.connection.execute("CREATE SCHEMA other")
    job.connection.execute(
        "CREATE TABLE other.rides AS SELECT id, created_at, distance + 5 AS distance FROM rides"
    )
    job.connection.execute("SET search_path TO other, public")
    assert job.run_once().total == tally(3, 21)


def test_two_jobs_on_one_warehouse_do_not_meet(books: Books) -> None:
    books.add(1, 2, 3)
    first = books.job()
    with pytest.raises(Unavailable, match="another run is writing to the warehouse"):
        books.job()
    first.run_once()


@pytest.mark.parametrize(
    ("meanwhile", "read"),
    [
        ("DELETE FROM rides WHERE id = 2", 2),
        ("DELETE FROM rides", 0),
        ("INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (2000, 1)", 4),
    ],
)
def test_what_spark_has_read_is_counted_before_it_is_believed(
    books: Books, meanwhile: str, read: int
) -> None:
    books.add(1, 2)
    books.skip_ids(5000)
    books.add(3)

    def change(stage: str) -> AbstractContextManager[None]:
        if stage == "Extracting new rides":
            books.world.connection.execute(meanwhile)
        return nullcontext()

    with pytest.raises(Unavailable, match=f"Spark read {read} rides where Postgres has 3"):
        books.job(change).run_once()
    assert books.in_warehouse() == (0, 0, Decimal(0))


@pytest.mark.parametrize("moment", ["Adding up new rides", Step.BEFORE_PUBLISH], ids=str)
def test_who_has_lost_the_lock_publishes_nothing(books: Books, moment: object) -> None:
    books.add(1, 2, 3)
    job = books.job()
    pid = job.connection.info.backend_pid

    def end_it(now: object) -> None:
        if now == moment:
            books.world.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    def shown(stage: str) -> AbstractContextManager[None]:
        end_it(stage)
        return nullcontext()

    job.shown = shown
    with pytest.raises(psycopg.OperationalError), listening(end_it):
        job.run_once()
    assert books.in_warehouse() == (0, 0, Decimal(0))


def test_a_folder_with_any_name_will_do(books: Books) -> None:
    books.world.folder = books.world.folder / "a {strange} [name]*?, 100%"
    books.add(1, 2, 3)
    books.run()
    books.add(4)
    books.claim("consumer0", 2, drift=MILLIMETRE)
    assert [c.drift for c in books.run().consumers] == [MILLIMETRE]
    assert books.in_warehouse() == books.in_postgres()


def test_ranges_hold_equal_numbers_of_rides_whatever_the_holes(books: Books) -> None:
    for _ in range(4):
        books.add_many(25_000)
        books.skip_ids(1_000_000)
    books.add_many(10)
    last = books.world.value("SELECT max(id) FROM rides")
    ranges = cut_into_ranges(books.world.connection, 0, last, parallelism=100)
    counts = [
        books.world.value("SELECT count(*) FROM rides WHERE id > %s AND id <= %s", after, upto)
        for after, upto, _ in ranges
    ]
    assert counts == [range_.rides for range_ in ranges] == [25_000] * 4 + [10]
    assert cut_into_ranges(books.world.connection, last, last + 10_000_000, parallelism=2) == []


def test_sums_are_exact_where_a_bigint_of_millimetres_would_not_be(books: Books) -> None:
    rides = books.spark.range(1, 10_000_001).selectExpr(
        "id", "CAST('999999999.999' AS DECIMAL(12,3)) AS distance", "DATE '2026-11-21' AS day"
    )
    found = cells(rides, marks=[5_000_000])
    assert sum(cell.rides for cell in found) == 10_000_000
    assert sum(cell.distance for cell in found) == Decimal("999999999.999") * 10_000_000


def test_an_overflow_is_an_error_and_never_a_null(books: Books) -> None:
    huge = books.spark.sql(
        "SELECT id, CAST(9e37BD AS DECIMAL(38,0)) AS distance, DATE '2026-11-21' AS day"
        " FROM range(1, 9)"
    )
    with pytest.raises(ArithmeticException):
        cells(huge)


def test_a_folder_that_cannot_be_made_is_one_clear_line(books: Books) -> None:
    books.warehouse.folder.parent.mkdir(exist_ok=True)
    books.warehouse.folder.write_text("a file")
    with pytest.raises(Unavailable, match="can't be written to"):
        books.run()
