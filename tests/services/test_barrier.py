"""The order barrier: only settled positions enter the log, and nothing else holds it up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.clusters import fresh_world
from tests.support.world import World, chained, drain, take, transaction
from unified_log.faults import InjectedCrash, crash_at
from unified_log.streamer.barrier import Barrier
from unified_log.streamer.drain import BatchStep


@pytest.mark.proves("order")
def test_the_log_waits_for_a_transaction_that_drew_a_lower_position(world: World) -> None:
    streamer = world.streamer()
    with transaction(world) as slow:
        [first] = take(slow, "100")
        later = world.take(3, 4)
        assert drain(streamer) == 0
        assert streamer.barrier.waiting
        slow.commit()
    assert drain(streamer) == 3
    assert [record.id for record in world.records()] == [first, *later]


def test_a_position_drawn_and_rolled_back_holds_nothing_up(world: World) -> None:
    streamer = world.streamer()
    with transaction(world) as doomed:
        take(doomed, 1)
        later = world.take(2)
        assert drain(streamer) == 0
    assert drain(streamer) == 1
    assert [record.id for record in world.records()] == later
    assert chained(world)
    assert drain(streamer) == 0


def test_transactions_that_begin_later_are_not_waited_for(world: World) -> None:
    streamer = world.streamer()
    with transaction(world) as slow:
        take(slow, 1)
        assert drain(streamer) == 0  # the barrier now waits for this one
        with transaction(world) as newcomer:
            take(newcomer, 2)
            slow.commit()
            assert drain(streamer) == 1
            newcomer.commit()
    assert drain(streamer) == 1


@pytest.mark.proves("order")
def test_a_writer_that_draws_between_the_two_looks_is_not_overtaken(world: World) -> None:
    """The sequence is read first, and the writers are noted after: the other way round loses it."""
    [first] = world.take(1)
    connection = InterruptedConnection.connect(world.postgres_url, autocommit=True)
    barrier = Barrier(connection)
    with transaction(world) as writer:
        drawn: list[int] = []
        connection.between = lambda: drawn.extend(take(writer, 2))
        assert barrier.settled() <= first
        assert drawn == [first + 1]
        world.take(3)
        assert barrier.settled() <= first
        writer.commit()
    connection.close()
    assert drain(world.streamer()) == 3
    assert [record.id for record in world.records()] == [first, first + 1, first + 2]


class InterruptedConnection(psycopg.Connection):
    """Does something else once, right before the second statement."""

    between: Callable[[], None] | None = None
    statements = 0

    def execute(self, *arguments: Any, **options: Any) -> Any:
        self.statements += 1
        if self.statements == 2 and self.between:
            self.between()
        return super().execute(*arguments, **options)


def test_a_writer_in_a_copy_of_the_database_is_not_waited_for(
    world: World, postgres: Postgres, redis: Redis, tmp_path: Path
) -> None:
    """Its tables have the same oids."""
    with fresh_world(postgres, redis, tmp_path) as copy, transaction(copy) as elsewhere:
        oids = {w.value("SELECT 'rides'::regclass::oid") for w in (world, copy)}
        assert len(oids) == 1
        take(elsewhere, 1)
        world.take(5)
        assert drain(world.streamer()) == 1


KIND = "CREATE TABLE parcels (id bigint PRIMARY KEY DEFAULT nextval('log_position'))"
STAGE = "INSERT INTO staged_log_records VALUES (%s, 'parcel.create', '{}')"


@pytest.mark.proves("order-of-kinds")
def test_a_kind_of_record_is_waited_for_before_its_table_is_committed(world: World) -> None:
    """Also by one that draws its number in one statement, and stages the record in another."""
    streamer = world.streamer()
    with transaction(world) as slow:
        slow.execute(KIND)
        [(parcel,)] = slow.execute("INSERT INTO parcels DEFAULT VALUES RETURNING id")
        [ride] = world.take(2)
        assert drain(streamer) == 0
        slow.execute(STAGE, [parcel])
        slow.commit()
    assert drain(streamer) == 2
    assert [record.id for record in world.records()] == [parcel, ride]


def test_a_batch_ends_with_what_is_settled(world: World) -> None:
    """A batch that failed is read again, still on the old reading of the barrier."""
    ids = world.take(1, 2)
    streamer = world.streamer()
    with crash_at(BatchStep.BEFORE_SEND), pytest.raises(InjectedCrash):
        streamer.run_once()
    with transaction(world) as slow:
        ids += take(slow, 3)
        ids += world.take(4)
        assert drain(streamer) == 2
        slow.commit()
    assert drain(streamer) == 2
    assert [record.id for record in world.records()] == ids


def test_the_wait_names_the_session_it_is_for(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unified_log.streamer.barrier.FIRST_NOTICE", 0)
    barrier = Barrier(world.connect())
    with transaction(world) as slow:
        take(slow, 1)
        barrier.settled()
        [message] = caplog.messages
        assert f"session {slow.info.backend_pid} " in message
    assert "idle in transaction" in message
