"""Totals begin at the newest period that is closed, and are as exact as from the first ride."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar

import psycopg
import pytest

from consumers.rides import TYPE, ride
from consumers.totals.total import Total
from tests.support.closings import RECOUNT, altered, begin, close, is_right, three_closed
from tests.support.disasters import flush, lose
from tests.support.held_out import hold_out
from tests.support.resets import RECONCILE, ask
from tests.support.world import (
    Consumer,
    World,
    catch_up,
    drain,
    exact,
)
from unified_log import session_settings
from unified_log.readers.handler import Handler
from unified_log.readers.reader import Reader

MANY_RIDES = """
    INSERT INTO rides (distance) SELECT 1 + number % 977 FROM generate_series(1, 100000) number
"""
MANY_SENT = """
    UPDATE streamer_state SET (last_sent_id, records_sent) = (SELECT max(id), 100000 FROM rides)
"""


@pytest.fixture
def closed(world: World) -> World:
    return three_closed(world)


def test_a_total_that_starts_late_begins_at_the_newest_closing(closed: World) -> None:
    close(closed, closed.start + 4)
    consumer = closed.consumer()
    assert consumer.standing == (closed.start + 4, Decimal(10))
    assert is_right(closed, consumer)
    assert closed.value("SELECT records_healed FROM checkpoints") == 1
    closed.send(6)
    assert exact(closed, consumer)


def test_a_total_that_reads_a_whole_log_skips_what_is_closed(world: World) -> None:
    world.send(1, 2, 3, 4, 5)
    close(world, world.start + 3)
    assert exact(world)
    assert world.value("SELECT resends_skipped FROM checkpoints") == 3


def test_a_gap_from_before_a_closing_heals_from_there(world: World) -> None:
    """What it had counted and what is healed make up the whole, also in the counters.

    That it is right so far is seen from the last run on.
    """
    world.send(1, 2)
    consumer = world.consumer()
    catch_up(consumer)
    world.connection.execute(RECONCILE, [1, 1])
    world.send(3, 4, 5)
    close(world, world.start + 4)
    flush(world)
    with altered(world, ride=1), altered(world, ride=3):
        catch_up(consumer)
    assert exact(world, consumer)
    assert world.value("SELECT records_healed FROM checkpoints") == 3
    assert world.value("SELECT distance_healed FROM consumer_states") == 12


def test_a_total_that_had_drifted_is_not_right_all_at_once(world: World) -> None:
    """It heals from the rides: the next run sees what it lacks, and what was healed is counted."""
    world.send(1, 2)
    catch_up(world.consumer())
    world.connection.execute("UPDATE consumer_states SET total_distance = total_distance - 1")
    consumer = world.consumer()
    world.send(3, 4, 5)
    close(world, world.start + 4)
    flush(world)
    position, distance = world.truth
    assert catch_up(consumer) == (position, distance - 1)
    assert world.value("SELECT distance_healed FROM consumer_states") == 12


def test_a_gap_behind_records_of_the_same_batch_counts_each_once(world: World) -> None:
    """The total is not that of the rides before the gap yet, so it heals from the rides."""
    consumer = world.consumer()
    world.send(1, 2, 3, 4, 5)
    close(world, world.start + 4)
    lose(world, 2, 3, 4)
    assert exact(world, consumer)
    assert world.value("SELECT records_healed FROM checkpoints") == 3


def test_what_somebody_has_put_right_by_hand_stays_right(world: World) -> None:
    """What a consumer remembers is not the total any more, so it heals from the rides."""
    world.send(1, 2)
    catch_up(world.consumer())
    world.connection.execute("UPDATE consumer_states SET total_distance = total_distance - 1")
    consumer = world.consumer()
    world.connection.execute("UPDATE consumer_states SET total_distance = total_distance + 1")
    world.send(3, 4, 5)
    close(world, world.start + 4)
    lose(world, 3, 4)
    assert exact(world, consumer)


def test_a_total_that_holds_a_ride_out_heals_from_the_rides_and_still_lacks_it(
    world: World,
) -> None:
    ids = world.send(1, 2)
    consumer = world.consumer()
    catch_up(consumer)
    hold_out(world, "consumer0", ids[0])
    consumer = world.consumer()
    world.send(3, 4, 5)
    close(world, world.start + 4)
    flush(world)
    position, distance = world.truth
    assert catch_up(consumer) == (position, distance - 1)
    assert world.value("SELECT count(*) FROM held_out_records") == 1


@pytest.mark.parametrize("asked", ["recount", "reset"])
def test_what_is_made_anew_begins_at_the_closing_and_takes_in_what_was_held_out(
    closed: World, asked: str
) -> None:
    """The reset is of a run that is older than the closing."""
    consumer = closed.consumer()
    catch_up(consumer)
    hold_out(closed, "consumer0", closed.start + 1)
    if asked == "reset":
        ask(closed, upto=2)
    else:
        closed.connection.execute(RECOUNT)
    assert is_right(closed, closed.consumer(), ride=3)
    assert closed.value("SELECT count(*) FROM held_out_records") == 0


def test_a_closing_past_what_was_sent_is_not_used(world: World) -> None:
    """As after a restore of the streamer's state alone."""
    world.send(1, 2)
    [third] = world.take(3)
    close(world, third)
    consumer = world.consumer()
    assert catch_up(consumer) == (world.start + 2, Decimal(3))
    drain(world.streamer())
    assert exact(world, consumer)


class Kept(Handler):
    """Keeps its rides, as many a handler does, and joins: no `heal`, no `recount` of its own."""

    KIND = "kept"
    TYPES: ClassVar = {TYPE: ride}
    CLOSED: ClassVar = 3  # a position of the cell

    def begin(self) -> None:
        self.connection.execute("INSERT INTO kept VALUES (%s, %s, 0)", [self.KIND, self.name])

    def close(self, position: int) -> int | None:
        self.connection.execute("UPDATE kept SET distance = 6")
        return position - 2

    def take(self, records: Sequence[Any]) -> None:
        added = sum((record.distance for record in records), Decimal(0))
        self.connection.execute("UPDATE kept SET distance = distance + %s", [added])


def test_any_handler_joins_where_it_begins_and_where_it_starts_over(world: World) -> None:
    world.connection.execute(
        "CREATE TABLE kept (kind text, name text, distance numeric, PRIMARY KEY (kind, name),"
        " FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE)"
    )
    world.send(1, 2, 3, 4, 5)
    flush(world)
    with altered(world):
        reader = Reader(world.log(), Kept(world.connect(), "kept0"))
        assert reader.at.position == world.start + 3
        for change in ("SELECT 1", RECOUNT):
            world.connection.execute(change)
            for _ in range(3):
                reader.run_once()
            assert reader.at.position == world.start + 5
            assert world.value("SELECT distance FROM kept") == 15
    assert world.value("SELECT records_healed FROM checkpoints") == 2


READ = """
    SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0) FROM pg_stat_xact_user_tables
    WHERE relname = 'rides'
"""


@pytest.mark.proves("closings-shorten")
def test_a_new_total_reads_few_rides_before_its_first_new_one(world: World) -> None:
    """Of a hundred thousand, of which all but a hundred are closed; also without statistics."""
    world.connection.execute(MANY_RIDES)
    world.connection.execute(MANY_SENT)
    close(world, world.start + 99_900)
    for name in ("without", "analyzed"):
        connection, read = world.connect(**session_settings.INDEX_SCANS), list[Any]()
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        with connection.transaction():
            begin(world, connection, name)
            read += connection.execute(READ).fetchone() or []
        consumer = Consumer(world.log(), Total(connection, name))
        with connection.transaction():
            consumer.run_once()
            read += connection.execute(READ).fetchone() or []
        assert exact(world, consumer)
        assert 100 <= sum(read) < 1000
        world.connection.execute("ANALYZE rides")
