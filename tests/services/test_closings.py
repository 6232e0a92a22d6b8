"""Totals begin at the newest period that is closed, and are as exact as from the first ride.

To see where one has begun, the first ride is made longer by hand once it is closed: whoever reads
it has a metre too much.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, ClassVar

import psycopg
import pytest

from analytics.close import reopen as reopening
from consumers.rides import TYPE, ride
from consumers.totals.closing import LOCK, newest
from consumers.totals.total import Total
from rocket_rides.locks import Lock
from rocket_rides.settings import PROJECT
from tests.support.closings import alter, close, reopen
from tests.support.disasters import flush, lose, stranded
from tests.support.held_out import hold_out
from tests.support.resets import RECONCILE, ask
from tests.support.world import (
    Consumer,
    World,
    catch_up,
    drain,
    eventually,
    exact,
    transaction,
)
from unified_log import session_settings
from unified_log.errors import Unavailable
from unified_log.readers.handler import Handler
from unified_log.readers.healing import View
from unified_log.readers.reader import Reader
from unified_log.readers.taking import Taking
from unified_log.repair import repair

LONGER = "UPDATE rides SET distance = distance + %s WHERE id = cell_start() + %s"
RECOUNT = "UPDATE checkpoints SET recount = true"
CLOSINGS = "SELECT id FROM closings"
REOPEN = "SELECT reopen_closings(%s)"
MANY_RIDES = """
    INSERT INTO rides (distance) SELECT 1 + number % 977 FROM generate_series(1, 100000) number
"""
MANY_SENT = """
    UPDATE streamer_state SET (last_sent_id, records_sent) = (SELECT max(id), 100000 FROM rides)
"""


@contextmanager
def altered(world: World, ride: int = 1) -> Iterator[None]:
    """The cell's so manieth ride is longer meanwhile."""
    world.connection.execute(LONGER, [1, ride])
    yield
    world.connection.execute(LONGER, [-1, ride])


@pytest.fixture
def closed(world: World) -> World:
    """Five rides, of which three are closed; the log has lost all of them."""
    world.send(1, 2, 3, 4, 5)
    close(world, world.start + 3)
    flush(world)
    return world


def is_right(world: World, consumer: Consumer | None = None, ride: int = 1) -> bool:
    """Whether a total is exact, which did not read that ride."""
    consumer = consumer or world.consumer()
    with altered(world, ride):
        catch_up(consumer)
    return exact(world, consumer)


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


def test_a_closing_is_reopened_with_all_later_ones_and_no_earlier_one(closed: World) -> None:
    for more in (4, 5):
        close(closed, closed.start + more)
    [first, *later] = (
        id_ for (id_,) in closed.connection.execute(f"{CLOSINGS} ORDER BY id").fetchall()
    )
    said = reopening(closed.connect(), later[0], "a reason")
    assert said.startswith(f"Reopened: {later[0]}, {later[1]}. ")
    assert closed.connection.execute(f"{CLOSINGS} WHERE reopened_at IS NULL").fetchall() == [
        (first,)
    ]


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


def test_what_another_process_of_the_name_has_put_right_stays_right(world: World) -> None:
    """Its memory is not the total any more, so it heals from the rides."""
    world.send(1, 2)
    catch_up(world.consumer())
    world.connection.execute("UPDATE consumer_states SET total_distance = total_distance - 1")
    consumer = world.consumer()
    world.connection.execute(RECOUNT)
    catch_up(world.consumer())
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


ALTERED = {
    "the rides": "UPDATE closings SET rides = rides + 1 WHERE id = 2",
    "the distance": "UPDATE closings SET total_distance = total_distance + 1 WHERE id = 2",
    "the position": "UPDATE closings SET position = position + 1 WHERE id = 2",
}


@pytest.mark.parametrize("change", ALTERED)
def test_a_closing_that_was_altered_by_hand_is_not_used(closed: World, change: str) -> None:
    close(closed, closed.start + 4)
    alter(closed, ALTERED[change])
    assert closed.consumer().standing == (closed.start + 3, Decimal(6))
    assert is_right(closed)


def test_a_closing_that_was_reopened_is_not_used(
    closed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reopen(closed, close(closed, closed.start + 4))
    assert closed.consumer().standing == (closed.start + 3, Decimal(6))
    session = closed.connect()
    execute = session.execute

    def a_little_late(query: Any, values: Any) -> Any:
        if query == LOCK:  # once this has seen it
            reopen(closed, 1)
        return execute(query, values)

    monkeypatch.setattr(session, "execute", a_little_late)
    assert newest(session, 0, closed.start + 5) is None


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE closings SET rides = rides + 1",
        "UPDATE closings SET hash = repeat('0', 64)",
        "UPDATE closings SET reopened_at = now(), reopened_by = 'a', reason = 'b', rides = 0",
        "DELETE FROM closings",
        "TRUNCATE closings",
    ],
)
def test_a_closing_is_for_good(closed: World, change: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="can't be changed or deleted"):
        closed.connection.execute(change.encode())
    reopen(closed, 1)
    with pytest.raises(psycopg.errors.CheckViolation, match="only reopened, once"):
        reopen(closed, 1)
    with pytest.raises(psycopg.errors.CheckViolation, match="only reopened, once"):
        closed.connection.execute(
            "UPDATE closings SET reopened_at = NULL, reopened_by = NULL, reason = NULL"
        )


def test_who_begins_while_closings_are_reopened_begins_a_little_later(closed: World) -> None:
    with transaction(closed) as reopening:
        reopening.execute("SELECT pg_advisory_xact_lock(%s)", [Lock.CLOSINGS])
        with pytest.raises(Unavailable, match="closings are being reopened"):
            closed.consumer()
    assert closed.value("SELECT count(*) FROM checkpoints") == 0
    assert is_right(closed)


def test_reopening_waits_for_who_is_about_to_begin_and_then_reaches_it(closed: World) -> None:
    """As a repair of the log does it: its hook, and then its request for recounts."""
    reopening = closed.connect(lock_timeout="50ms")
    beginning = closed.connect()
    beginning.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with beginning.transaction():
        begin(closed, beginning)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            reopening.execute(REOPEN, [closed.start + 1])
    closed.connection.execute(LONGER, [1, 1])
    reopening.execute(REOPEN, [closed.start + 1])
    closed.connection.execute(RECOUNT)
    consumer = closed.consumer()
    eventually(lambda: catch_up(consumer) == closed.truth)


def begin(world: World, connection: psycopg.Connection) -> None:
    """What a reader does first."""
    Taking(Total(connection, "consumer0"), View(connection, {}), world.stream)


def test_records_that_are_repaired_below_a_closing_reopen_it(world: World) -> None:
    """It has not counted them; so nobody begins there any more."""
    stranded(world)
    catch_up(world.consumer())
    position, _ = world.truth
    close(world, world.start + 1)
    for upto in (world.start + 2, position):
        close(world, upto, off=-20)  # without the stranded ride, as both sides say it
    records, _ = repair(world.connect())
    assert records == [world.start + 2]
    reopened = "SELECT id, reason FROM closings WHERE reopened_at IS NOT NULL"
    said = f"record {world.start + 2} was repaired"
    assert world.connection.execute(reopened).fetchall() == [(2, said), (3, said)]
    for name in ("consumer0", "late"):
        assert exact(world, world.consumer(name))


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
@pytest.mark.parametrize("analyzed", [False, True])
def test_a_new_total_reads_few_rides_before_its_first_new_one(
    world: World, *, analyzed: bool
) -> None:
    """Of a hundred thousand, of which all but a hundred are closed; as in a process of its own."""
    world.connection.execute(MANY_RIDES)
    world.connection.execute(MANY_SENT)
    if analyzed:
        world.connection.execute("ANALYZE rides")
    close(world, world.start + 99_900)
    connection, read = world.connect(**session_settings.INDEX_SCANS), list[Any]()
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with connection.transaction():
        begin(world, connection)
        read += connection.execute(READ).fetchone() or []
    consumer = Consumer(world.log(), Total(connection, "consumer0"))
    with connection.transaction():
        consumer.run_once()
        read += connection.execute(READ).fetchone() or []
    assert exact(world, consumer)
    assert 100 <= sum(read) < 1000


def test_the_lock_in_the_schema_is_pythons() -> None:
    schema = (PROJECT / "migrations/versions/0011_closings.sql").read_text()
    assert f"pg_advisory_xact_lock({Lock.CLOSINGS:d})" in schema
