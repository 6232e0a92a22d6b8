"""A cell: a fleet with a number, whose ids no other cell has."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from demo.embedded.servers import Postgres, Redis
from migrations import upgrade
from rocket_rides.database import CELL_SIZE
from lab.ports import free_ports
from tests.support.clusters import fresh_world
from tests.support.receipts import SECRET
from tests.support.world import World, chained, eventually, exact

REFUSING = [
    "migrations",
    "api",
    "streamer",
    "streamer.repair",
    "consumers consumer0",
    "consumers.ratings stars",
    "consumers.rollup",
    "consumers.rollup.aside list",
    "consumers.receipts receipts0",
    "consumers.receipts.dead list",
]

STARTS = """
    SELECT count(*) FROM streamer_state, rollup_state, receipts_state, checkpoints
    WHERE last_sent_id = %(start)s AND rollup_state.complete_to = %(start)s
      AND inbox_to = %(start)s AND receipts_state.complete_to = %(start)s
      AND position = %(start)s AND furthest = %(start)s
"""


@pytest.fixture
def empty(
    postgres: Postgres, redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    """A database without the schema, and processes that are told no number."""
    monkeypatch.delenv("CELL", raising=False)
    with fresh_world(postgres, redis, tmp_path, {}) as world:
        yield world


@pytest.mark.parametrize("cell", [0, 7, 89])
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


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cell SET number = 8",
        "DELETE FROM cell",
        "TRUNCATE cell",
        "INSERT INTO cell VALUES (true, 8)",
    ],
)
def test_the_number_of_a_cell_is_never_changed(world: World, change: str) -> None:
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
    empty.service("consumers", "consumer0")
    empty.service("streamer")
    eventually(lambda: empty.standing() == (empty.start + 1, 1), "a total")
