"""A cell: a fleet with a number, whose ids no other cell has."""

from collections.abc import Iterator

import psycopg
import pytest

from demo.embedded.servers import Postgres, Redis
from migrations import upgrade
from rocket_rides import database
from rocket_rides.database import CELL_SIZE
from rocket_rides.errors import Refused
from tests.support.clusters import fresh_world
from tests.support.world import World, chained, exact

STARTS = """
    SELECT count(*) FROM streamer_state, rollup_state, receipts_state, checkpoints
    WHERE last_sent_id = %(start)s AND rollup_state.complete_to = %(start)s
      AND inbox_to = %(start)s AND receipts_state.complete_to = %(start)s
      AND position = %(start)s AND furthest = %(start)s
"""


@pytest.fixture
def empty(postgres: Postgres, redis: Redis, tmp_path, monkeypatch) -> Iterator[World]:
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
