"""The warehouse: each ride is in it once, whatever died, and it is checked against Postgres."""

import shutil
import signal
from contextlib import AbstractContextManager, nullcontext
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from analytics.steps import RunStep
from tests.support.books import MILLIMETRE, Books, exact, tally
from tests.support.entries import RATE
from tests.support.jobs import SPARK_PATIENCE
from tests.support.killed_night import java_of
from tests.support.object_stores import root_of
from tests.support.world import drain
from unified_log.errors import Unavailable
from unified_log.faults import InjectedCrash, crash_at, listening

# Where runs are killed, one after the other, until one ends well; and their options. As long as
# nothing is published, they leave what no log names.
UNPUBLISHED = [RunStep.AFTER_FREEZE, RunStep.AFTER_EXTRACT, RunStep.BEFORE_PUBLISH]
KILLS: list[tuple[list[RunStep], list[str]]] = [
    (UNPUBLISHED, []),
    *(([step], []) for step in RunStep if step not in (RunStep.PUT_ASIDE, *UNPUBLISHED)),
    ([RunStep.BEFORE_COMMIT], ["--full"]),
]


def kill(books: Books, step: RunStep, *options: str) -> None:
    """A process of its own, by SIGKILL."""
    given = {"WAREHOUSE_DIR": books.root} | java_of(books.spark)
    job = books.world.service("tests.support.killed_night", step.name, *options, **given)
    assert job.ends(SPARK_PATIENCE) == -signal.SIGKILL, job.output.read_text()


def test_a_crash_at_any_step_leaves_nothing_that_counts_twice_or_is_missed(
    books: Books, bucket: Path
) -> None:
    """In an object store. That each step is on disk before the next is in `test_table.py`."""
    books = Books(books.world, books.spark, root_of(bucket), bucket)
    books.world.send(*range(1, 8))
    books.claim("consumer0", 3, drift=MILLIMETRE)
    books.follow()
    emitted = int(bool(books.run().resets))
    for steps, options in KILLS:
        books.world.send("10.001", "20.002")
        books.follow()
        for step in steps:
            kill(books, step, *options)
        books.world.send("30.003")
        books.follow()
        result = books.run()
        assert books.in_warehouse() == books.in_postgres(), steps
        assert result.total.distance == exact(books.world, result.position)
        assert [c.drift for c in result.consumers] == [MILLIMETRE, 0]
        emitted += 2 if RunStep.AFTER_COMMIT in steps else 1
        for table in ("reconciliations", "resets"):
            assert books.world.value(f"SELECT count(*) FROM {table}") == emitted
    assert books.caught_up() == books.world.truth


def test_a_crash_in_a_folder_counts_nothing_twice_either(books: Books) -> None:
    for step in (RunStep.AFTER_LEDGER, RunStep.BEFORE_COMMIT):
        books.world.send(1, 2, 3)
        with pytest.raises(InjectedCrash), crash_at(step):
            books.run()
        books.world.send(4)
        assert books.run().agrees
        assert books.in_warehouse() == books.in_postgres()


def test_a_night_reads_the_new_rides_only(books: Books) -> None:
    """In a folder with any name."""
    books.world.folder = books.world.folder / "a {strange} [name]*?, 100%"
    books.world.send(1, 2, 3)
    books.run()
    books.world.connection.execute("UPDATE rides SET distance = 99 WHERE id <= 3")
    books.world.send(4, 5)
    result = books.run(check=True)
    assert result.new == tally(2, 9)
    assert result.total == tally(5, 15)  # of what was there, only the warehouse was asked
    assert books.in_warehouse() == (3, 3, Decimal(6))


def test_rides_of_a_later_block_than_the_one_in_which_a_run_ended_agree_for_ever_after(
    books: Books,
) -> None:
    """A rating is the last record before that: the run's position lies in the later block."""
    [ride, _] = books.world.send(1, 2)
    books.skip_ids(150_000)
    books.world.connection.execute(RATE, [ride, 5])
    drain(books.world.streamer())
    assert books.run().position > 150_000
    books.world.send(3, 4)
    books.follow()
    for full in (False, True, False):
        assert books.run(full=full).agrees
        assert books.in_warehouse() == books.in_postgres()


def test_a_damaged_warehouse_is_refused_with_the_way_out(books: Books) -> None:
    """One whose log is broken is rebuilt, and so is one that is gone; and that is said."""
    books.world.send(1, 2, 3)
    assert books.run().notes == []
    [file] = books.rides_on_disk.glob("day=*/*.parquet")
    file.write_bytes(b"PAR1" + file.read_bytes()[4:][::-1])
    with pytest.raises(Unavailable, match=r"can't be read .*Parquet.* --full rebuilds it"):
        books.run()
    is_rebuilt(books, "can't be read", full=True)
    newest = max((books.rides_on_disk / "_delta_log").glob("*.json"))
    for later in (1, 2):
        newest.with_name(f"{int(newest.stem) + later:020}.json").write_bytes(b"{")
    with pytest.raises(InjectedCrash), crash_at(RunStep.PUT_ASIDE):
        books.run()
    is_rebuilt(books, "is broken")
    assert books.run().notes == []
    shutil.rmtree(books.on_disk)
    is_rebuilt(books, "is gone: it is rebuilt")


def is_rebuilt(books: Books, why: str, *, full: bool = False) -> None:
    result = books.run(full=full)
    assert why in result.notes[0]
    assert result.agrees
    assert result.total == result.new == tally(3, 6)
    assert books.in_warehouse() == books.in_postgres()


def test_what_spark_has_read_is_counted_before_it_is_used(books: Books) -> None:
    books.world.send(1, 2, 3)
    for meanwhile, read, was in (
        ("DELETE FROM rides WHERE id = 2", 2, 3),
        ("INSERT INTO rides (id, distance) OVERRIDING SYSTEM VALUE VALUES (2, 1)", 3, 2),
    ):

        def change(stage: str, statement: str = meanwhile) -> AbstractContextManager[None]:
            if stage == "Extracting new rides":
                books.world.connection.execute(statement)
            return nullcontext()

        with pytest.raises(Unavailable, match=f"Spark read {read} rides where Postgres has {was}"):
            books.job(change).run_once()
        assert books.in_warehouse() == (0, 0, Decimal(0))


def test_what_a_full_run_reads_twice_must_be_the_same(books: Books) -> None:
    """Somebody puts a ride right meanwhile: the warehouse has that already."""
    books.world.send(1, 2, 3)
    books.run()
    before = books.in_warehouse()
    alter = "UPDATE rides SET distance = 3 - distance WHERE id = 1"
    books.world.connection.execute(alter)

    def meanwhile(step: object) -> None:
        if step is RunStep.AFTER_EXTRACT:
            books.world.connection.execute(alter)

    with pytest.raises(Unavailable, match="were changed"), listening(meanwhile):
        books.run(full=True)
    assert books.in_warehouse() == before


def test_who_has_lost_the_lock_publishes_nothing(books: Books) -> None:
    books.world.send(1, 2, 3)
    job = books.job()
    pid = job.connection.info.backend_pid

    def end_it(step: object) -> None:
        if step is RunStep.BEFORE_PUBLISH:
            books.world.connection.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    with pytest.raises(psycopg.OperationalError), listening(end_it):
        job.run_once()
    assert books.in_warehouse() == (0, 0, Decimal(0))
