"""A cell: a fleet with a number, whose ids no other cell has."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from analytics.extract import cut_into_ranges
from analytics.proofs import receipts
from analytics.result import Proved
from demo.embedded.servers import Postgres, Redis
from lab.ports import free_ports
from migrations import upgrade
from rocket_rides.cells import CELL_SIZE
from tests.support.clusters import fresh_world
from tests.support.receipts import SECRET
from tests.support.world import World, chained, eventually, exact, take
from unified_log import session_settings
from unified_log.database import one_row
from unified_log.session_settings import INDEX_SCANS

REFUSING = [
    "migrations",
    "api",
    "streamer",
    "unified_log.repair",
    "consumers.totals consumer0",
    "consumers.ratings stars",
    "consumers.rollup",
    "consumers.rollup.set_aside list",
    "consumers.receipts receipts0",
    "consumers.receipts.dead list",
]

STARTS = """
    SELECT count(*) FROM streamer_state, rollup_state, receipts_state, checkpoints
    WHERE last_sent_id = %(start)s AND rollup_state.complete_to = %(start)s
      AND inbox_to = %(start)s AND receipts_state.complete_to = %(start)s
      AND position = %(start)s AND furthest = %(start)s
"""


WEBHOOK_IDS = """
    SELECT webhook_id(salt, rides.id, distance, created_at) FROM rides CROSS JOIN receipts_state
"""
MINUTES = """
    INSERT INTO ride_minutes (minute, rides, distance, upto)
    SELECT date_trunc('minute', created_at), count(*), sum(distance), max(id) FROM rides GROUP BY 1
"""
DELIVERED = """
    INSERT INTO receipts (ride_id, outcome, attempts, decided_at)
    SELECT id, 'delivered', 1, now() FROM rides;
    UPDATE streamer_state SET last_sent_id = (SELECT max(id) FROM rides);
    UPDATE receipts_state SET inbox_to = last_sent_id, complete_to = last_sent_id
    FROM streamer_state
"""
RIDES = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"
ROWS_READ = """
    SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_xact_user_tables
    WHERE relname IN ('rides', 'receipts')
"""


class Looking(psycopg.Connection):
    """Counts its statements."""

    looks = 0

    def execute(self, *arguments: Any, **options: Any) -> Any:
        self.looks += 1
        return super().execute(*arguments, **options)


@pytest.fixture
def empty(
    postgres: Postgres, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A database without the schema, and processes that are told no number."""
    monkeypatch.delenv("CELL", raising=False)
    with fresh_world(postgres, redis, tmp_path, {}) as world:
        yield world


@pytest.mark.parametrize("cell", [0, 89])
def test_a_cells_ids_and_all_who_follow_them_begin_at_its_number(empty: World, cell: int) -> None:
    upgrade(empty.postgres_url, cell)
    start = cell * 10**14
    empty.connection.execute("INSERT INTO checkpoints (name) VALUES ('outside')")
    assert empty.value(STARTS % {"start": start}) == 1
    empty.connection.execute("DELETE FROM checkpoints")
    consumer = empty.consumer()
    assert empty.send(1, 2, 3) == [start + 1, start + 2, start + 3]
    assert [record.prev for record in empty.records()] == [start, start + 1, start + 2]
    assert chained(empty)
    assert exact(empty, consumer)
    assert empty.value("SELECT gaps_healed FROM checkpoints") == 0


def test_a_cell_refuses_a_ride_past_its_last_id(empty: World) -> None:
    upgrade(empty.postgres_url, 89)
    last = 90 * CELL_SIZE - 1
    empty.connection.execute("SELECT setval('log_position', %s)", [last - 1])
    assert empty.take(1) == [last]
    assert last < 2**53  # exact in JavaScript
    with pytest.raises(psycopg.errors.SequenceGeneratorLimitExceeded, match="log_position"):
        empty.take(1)


def test_the_number_of_a_cell_is_never_changed(world: World) -> None:
    for change in (
        "UPDATE cell SET number = 8",
        "DELETE FROM cell",
        "TRUNCATE cell",
        "INSERT INTO cell VALUES (true, 8)",
    ):
        with pytest.raises(psycopg.errors.IntegrityError):
            world.connection.execute(change)


def test_a_process_that_is_told_another_number_refuses_in_one_sentence(empty: World) -> None:
    """Whatever it is: a service, a tool, or the migration, which then changes nothing."""
    told = {"CELL": "8", "RECEIPT_SECRET": SECRET, "API_PORT": str(free_ports())}
    upgrade(empty.postgres_url, 7)
    sentence = "CELL=8 is refused: the database is cell 7, which can't be changed"
    for module in REFUSING:
        refused = empty.service(*module.split(), **told)
        assert refused.ends() != 0
        last = refused.output.read_text().splitlines()[-1]
        assert last.endswith(sentence), module
    assert empty.value("SELECT number FROM cell") == 7
    empty.service("migrations", CELL="7").says("the schema is up to date")


def test_a_number_that_no_cell_has_is_refused_and_nothing_moves(empty: World) -> None:
    migration = empty.service("migrations", CELL="90")
    assert migration.ends() == 2
    assert migration.output.read_text() == (
        "CELL=90 is refused: Input should be less than or equal to 89\n"
    )
    assert empty.value("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 0


def test_a_service_without_a_number_takes_the_databases(empty: World) -> None:
    assert empty.service("migrations", CELL="7").ends() == 0
    empty.take(1)
    empty.service("consumers.totals", "consumer0")
    empty.service("streamer")
    eventually(lambda: empty.standing() == empty.truth, "a total")


@pytest.fixture
def two_cells(postgres: Postgres, redis: Redis, tmp_path: Path) -> Iterator[list[World]]:
    with ExitStack() as until_the_end:
        worlds = [
            until_the_end.enter_context(fresh_world(postgres, redis, tmp_path, {})) for _ in "ab"
        ]
        for world, cell in zip(worlds, (0, 89), strict=True):
            upgrade(world.postgres_url, cell)
        yield worlds


@pytest.mark.proves("cell")
def test_what_two_cells_say_of_their_rides_is_told_apart(two_cells: list[World]) -> None:
    """Of equal rides of one moment; all of it is put into the tables of one of them."""
    ids, webhook_ids, minutes = list[int](), list[object](), list[object]()
    for world in two_cells:
        ids += take(world.connection, *[5] * 3, moments=["2026-03-01 10:00Z"] * 3)
        webhook_ids += world.connection.execute(WEBHOOK_IDS).fetchall()
        world.connection.execute(DELIVERED, prepare=False)
        world.connection.execute(MINUTES)
        minutes += world.connection.execute("SELECT number, minute FROM cell, ride_minutes")
    assert len(set(ids)) == len(set(webhook_ids)) == 6
    assert len(set(minutes)) == 2
    one, other = two_cells
    for (ride,) in other.connection.execute("SELECT ride_id FROM receipts").fetchall():
        one.connection.execute("INSERT INTO receipts (ride_id) VALUES (%s)", [ride])
    assert one.value("SELECT count(*) FROM receipts") == 6


def test_a_cells_first_ids_cost_as_little_as_those_from_1_on(two_cells: list[World]) -> None:
    """What a night goes along, and the sizes of Spark's ranges, whatever the number."""
    costs = []
    for world in two_cells:
        world.connection.execute(RIDES, [20_000])
        world.connection.execute(DELIVERED, prepare=False)
        last = world.value("SELECT last_sent_id FROM streamer_state")
        options = session_settings.statement(INDEX_SCANS)
        with Looking.connect(world.postgres_url, autocommit=True) as connection:
            connection.execute(options)
            with connection.transaction():
                ranges = cut_into_ranges(connection, 0, last, parallelism=1)
                verdict = receipts.prove(connection, Proved(), last, Random(1))
                again = receipts.prove(connection, verdict.proved, last, Random(1))
                [rows] = one_row(connection.execute(ROWS_READ))
        assert verdict.agrees
        assert verdict.rides == 20_000
        sizes = [each.rows for each in ranges]
        costs.append((sizes, again.rides, connection.looks, rows))
    assert costs[0] == costs[1]
    assert costs[0][0] == [20_000]
