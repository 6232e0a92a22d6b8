"""The log's size: what is let go of, and a Redis that takes no more."""

from functools import partial

import pytest

from tests.support.clusters import each_stream_server
from tests.support.disasters import trigger
from tests.support.looks import seen
from tests.support.receipts import Staff, sent
from tests.support.receiver import Receiver
from tests.support.world import World, catch_up, drain, eventually
from unified_log.log import START, LogFull, Staged, stream
from unified_log.streamer.trimming import Caps, Trimmer
from unified_log.terms import Term
from watch.facts import Receipts

AN_HOUR = 3600.0
A_NODE = 100  # entries, at most, by default
TERM = Term("0123456789abcdef", 0)


def trimming(world: World, length: int = 10_000, age: float = AN_HOUR) -> Trimmer:
    return Trimmer(world.connection, world.log(), Caps(length, age))


@each_stream_server
def test_redis_out_of_memory_holds_the_backlog_and_loses_nothing(world: World) -> None:
    consumer = world.consumer()
    log = world.log().redis
    world.take(*range(1, 3001))
    streamer = world.streamer()
    streamer.run_once()
    log.config_set("maxmemory", 1)
    try:
        with pytest.raises(LogFull):
            streamer.run_once()
        assert world.staged() == 2000
        # The consumer has read nothing, so trimming goes past it; it will heal.
        assert trimming(world).make_room() == 500
        catch_up(consumer)
        assert trimming(world).make_room() == 499  # all but the last read
    finally:
        log.config_set("maxmemory", 0)
    drain(streamer)
    at = catch_up(consumer)
    assert at == world.truth


def test_a_full_redis_does_not_keep_postgres_busy(world: World) -> None:
    """To delete what Redis then refuses would be written, and taken back, at each attempt."""
    world.connection.execute("CREATE SEQUENCE deletes")  # which no rollback takes back
    note = "PERFORM nextval('deletes'); RETURN OLD;"
    trigger(world, "note", "BEFORE DELETE ON staged_log_records", note)
    streamer, control = world.streamer(), world.log().redis
    world.take(6)
    control.config_set("maxmemory", 1)
    try:
        for _ in range(4):
            with pytest.raises(LogFull):
                streamer.run_once()
    finally:
        control.config_set("maxmemory", 0)
    assert world.value("SELECT last_value FROM deletes") == 1
    drain(streamer)
    assert catch_up(world.consumer())[1] == 6


def test_a_leader_makes_room_in_a_full_redis_and_goes_on_when_there_is_some(world: World) -> None:
    leader = world.service("streamer").says("leading")
    control = world.log().redis
    control.config_set("maxmemory", 1)
    try:
        world.take(1, 2, 3)
        leader.says("trimming old entries")
    finally:
        control.config_set("maxmemory", 0)
    eventually(lambda: world.staged() == 0)
    assert len(world.records()) == 3
    assert leader.stop() == 0


def test_a_leader_trims_also_while_rides_keep_ringing(world: World) -> None:
    world.take(*[1] * 1200)
    leader = world.service("streamer", STREAM_MAX_LENGTH="1000").says("leading")
    eventually(lambda: world.staged() == 0)

    def is_trimmed() -> bool:
        world.take(1)
        return world.records()[0].id > 1

    eventually(is_trimmed, "a log that is trimmed")
    assert leader.stop() == 0


@pytest.mark.proves("cap")
@each_stream_server
def test_the_cap_trims_past_a_consumer_that_never_came_back(world: World) -> None:
    gone = world.consumer("gone")
    world.send(*range(1, 3001))
    trimming(world, length=1000).trim()
    assert world.log().length() < 1200
    assert catch_up(gone)[1] == sum(range(1, 3001))


@each_stream_server
def test_a_backlog_that_is_sent_at_once_is_trimmed_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a log that grows by more in a second than one XTRIM drops would outgrow its cap.

    Millions, after a reader was removed, go by and by: Redis answers nobody meanwhile.
    """
    log = world.log()
    for first in range(1, 24_001, 2000):
        log.append([Staged(first + more, "ride.create", "{}") for more in range(2000)], 0, TERM)
    world.consumer("gone")
    with monkeypatch.context() as patched:
        patched.setattr(stream, "MOST_TRIMMED", 500)
        assert 0 < trimming(world, length=1000).trim() <= 500
    trimming(world, length=1000).trim()
    assert log.length() < 1000 + A_NODE
    assert log.trim_before(log.last_id()) > 800
    assert log.length() <= A_NODE


def test_a_reader_that_writes_its_place_in_many_digits_stops_nothing(world: World) -> None:
    """Redis takes no id of more than 127 characters."""
    consumer = world.consumer()
    world.send(*range(1, 301))
    catch_up(consumer)
    pad = "UPDATE checkpoints SET last_redis_id = repeat('0', 128) || last_redis_id"
    world.connection.execute(pad)
    assert trimming(world).trim() > 0


@each_stream_server
def test_by_count_and_by_age_whole_nodes_go_or_exactly_what_is_beyond(world: World) -> None:
    log = world.log()
    for first in range(1, 1001, 10):  # of several milliseconds
        log.append([Staged(first + more, "ride.create", "{}") for more in range(10)], 0, TERM)
    ids = [entry.redis_id for entry in log.read(START, 1000)]
    assert log.trim_to(999) == log.trim_before(ids[1]) == 0  # less than a node
    assert 450 <= 1000 - log.trim_to(450) == log.length() < 450 + A_NODE
    left = log.length()
    assert log.trim_to(450, exactly=True) == left - 450
    assert log.read(START, 1)[0].redis_id == ids[-450]
    assert 250 <= 450 - log.trim_before(ids[-250]) == log.length() < 250 + A_NODE
    left = log.length()
    assert log.trim_before(ids[-250], exactly=True) == left - 250
    assert log.read(START, 1)[0].redis_id == ids[-250]
    assert log.trim_before(ids[-250], exactly=True) == log.trim_to(250, exactly=True) == 0


def is_read(staff: Staff, rides: int) -> bool:
    """All of them are in the inbox, and less than a tenth of their entries is pending."""
    queued = staff.world.value("SELECT count(*) FROM receipts")
    return bool(queued == rides) and staff.pending < rides / 10


def test_a_receiver_that_is_absent_holds_nothing_in_the_log(
    world: World, staff: Staff, receiver: Receiver
) -> None:
    receiver.goes_away()
    staff.service()
    for upto in (1000, 2000):
        sent(world, 1000)
        eventually(partial(is_read, staff, upto))
        trimming(world).trim()
        assert world.log().length() < upto / 10

    def tried() -> Receipts | None:
        """Also by a worker whose other loop began late."""
        found = seen(world).receipts
        return found if found.waiting else None

    receipts = eventually(tried, "attempts in vain")
    assert receipts.queued + receipts.in_flight + receipts.waiting == receipts.pending > 1600
