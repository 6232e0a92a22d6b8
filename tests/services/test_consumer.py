"""Consumers: every ride counts once, whatever the log does."""

import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
import redis

from consumers.totals.total import Total
from tests.support.clock import Clock
from tests.support.clusters import each_stream_server
from tests.support.disasters import cut_newest, flush
from tests.support.world import World, catch_up, drain, eventually, exact
from unified_log.errors import Overtaken
from unified_log.faults import InjectedCrash, crash_at
from unified_log.log import START, Entry
from unified_log.readers.checkpoint import Place
from unified_log.readers.committing import TOO_SOON
from unified_log.readers.gaps import Gap
from unified_log.readers.reader import LONGEST_REST, SMALLEST_BATCH, Reader
from unified_log.readers.round import RoundStep
from unified_log.readers.running import IDLE_ROUND
from unified_log.streamer.drain import BatchStep


def add(world: World, data: bytes) -> None:
    world.log().redis.xadd(world.stream, {"data": data, "prev": b"0"})


@pytest.mark.proves("one-transaction")
@pytest.mark.parametrize("step", RoundStep)
def test_a_crash_at_any_step_counts_every_ride_once(world: World, step: RoundStep) -> None:
    world.send("0.001", "0.002")
    with pytest.raises(InjectedCrash), crash_at(step):
        world.consumer().run_once()
    counted = step is RoundStep.AFTER_COMMIT
    assert world.standing() == (world.truth if counted else (world.start, Decimal(0)))
    assert exact(world, world.consumer())


def test_totals_are_exact_where_binary_floats_are_not(world: World) -> None:
    world.send(*["0.1"] * 1000, "999999999.999")
    assert catch_up(world.consumer())[1] == Decimal("1000000099.999")


@pytest.mark.proves("counts-once")
def test_two_processes_under_one_name_never_count_a_ride_twice(world: World) -> None:
    world.send(1, 2)
    one, other = world.consumer("same"), world.consumer("same")
    one.run_once()
    with pytest.raises(Overtaken):
        other.run_once()
    assert world.standing("same") == world.truth


@pytest.mark.parametrize("by_hand", ["last_redis_id = '0-0'", "position = cell_start()"])
def test_a_checkpoint_that_somebody_sets_back_is_moved_from_there(
    world: World, by_hand: str
) -> None:
    consumer = world.consumer()
    world.send(1, 2)
    consumer.run_once()
    world.send(3)
    world.connection.execute(f"UPDATE checkpoints SET {by_hand}")
    with pytest.raises(Overtaken):
        consumer.run_once()


@each_stream_server
def test_an_invalid_entry_is_set_aside_once_and_stops_nothing(world: World) -> None:
    consumer = world.consumer()
    add(world, b"ride")
    world.send(7)
    assert exact(world, consumer)
    world.connection.execute("UPDATE checkpoints SET last_redis_id = '0-0'")  # read it again
    assert exact(world, world.consumer())
    kept = world.connection.execute("SELECT consumer_name, fields FROM malformed_entries")
    [row] = kept.fetchall()
    assert row == ("consumer0", [b"data", b"ride", b"prev", b"0"])
    assert world.value("SELECT entries_malformed FROM checkpoints") == 1


def test_what_was_in_the_log_already_is_looked_at_without_a_wait(
    world: World, clock: Clock
) -> None:
    consumer = world.consumer()
    world.send(1)
    assert consumer.run_once(wait=1).records
    assert clock.now == 0


def test_a_look_before_the_commit_makes_the_next_wait_longer(world: World, clock: Clock) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    consumer._log.read = clock.goes(1, consumer._log.read)  # type: ignore[method-assign]
    world.take(1)
    with pytest.raises(InjectedCrash), crash_at(BatchStep.AFTER_SEND):
        streamer.run_once()
    first = consumer.committing.seconds
    assert consumer.run_once(wait=1).held
    longer = consumer.committing.seconds
    assert (clock.now, longer) == (1 + first, first * TOO_SOON)
    drain(world.streamer())
    assert consumer.run_once(wait=1).records
    assert clock.now == 2 + first + longer
    assert consumer.committing.seconds < longer


def test_a_consumer_begins_with_a_checkpoint_and_its_total_of_one_moment(world: World) -> None:
    """A process of the same name counts a batch between the two looks, or would."""
    world.send(1)
    first = world.consumer("same")
    first.run_once()
    world.send(2)
    counting = threading.Thread(target=first.run_once)

    class LateTotal(Total):
        def load(self, at: Place) -> None:
            counting.start()
            eventually(lambda: world.waiting or not counting.is_alive())
            super().load(at)

    second = Reader(world.log(), LateTotal(world.connect(), "same"))
    counting.join()
    assert (second.at.position, second.handler.distance) == (world.start + 1, Decimal(1))
    assert first.standing == world.truth


def test_a_checkpoint_never_moves_without_its_total(world: World) -> None:
    """Not even past rides that are sent again, or past nonsense: the total may come back."""
    consumer = world.consumer()
    world.send(5)
    catch_up(consumer)
    before = consumer.at
    world.connection.execute("DELETE FROM consumer_states")
    [entry] = world.log().read("0-0", 10)
    pairs = dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
    world.log().redis.xadd(world.stream, pairs)  # type: ignore[arg-type]
    add(world, b"nonsense")
    with pytest.raises(Overtaken, match="the total of consumer0 is gone"):
        consumer.run_once()
    [row] = world.connection.execute("SELECT last_redis_id, position FROM checkpoints")
    assert row == before


@pytest.mark.proves("gap-healed")
@pytest.mark.parametrize(
    ("disaster", "more", "caught_up"),
    [
        pytest.param(flush, True, False, id="flush, rides follow, behind"),
        pytest.param(flush, False, True, id="flush, no ride follows, caught up"),
        pytest.param(cut_newest, True, True, id="cut, rides follow, caught up"),
        pytest.param(cut_newest, False, False, id="cut, no ride follows, behind"),
    ],
)
def test_a_log_that_lost_entries_heals(
    world: World, disaster: Callable[[World], None], more: bool, caught_up: bool
) -> None:
    consumer, streamer = world.consumer(batch_size=3), world.streamer(batch_size=2)
    world.take(*range(1, 11))
    drain(streamer)
    consumer.run_once()
    if caught_up:
        catch_up(consumer)
    disaster(world)
    if more:
        world.send(100, 200)
    assert exact(world, world.consumer())


def test_whoever_is_behind_rests_between_batches_but_not_for_long(
    world: World, clock: Clock
) -> None:
    """Nor does it rest from waiting, or after batches of a few."""
    world.send(*[1] * (3 * SMALLEST_BATCH + 1))
    consumer, few = world.consumer(batch_size=SMALLEST_BATCH), world.consumer("few", batch_size=1)
    ask, read = consumer._ask, consumer._log.read
    consumer._log.read = clock.goes(100, read)  # type: ignore[method-assign]
    consumer.run_once()
    assert (consumer.behind, consumer.pause) == (True, 0)
    consumer._log.read = read  # type: ignore[method-assign]
    for took, rest in ((0.01, 0.02), (10, LONGEST_REST)):
        consumer._ask = clock.goes(took, ask)  # type: ignore[method-assign]
        consumer.run_once()
        assert consumer.pause == pytest.approx(rest)
    catch_up(consumer)
    assert consumer.pause == 0
    few._ask = clock.goes(10, few._ask)  # type: ignore[method-assign]
    few.run_once()
    assert (few.behind, few.pause) == (True, 0)


@each_stream_server
def test_a_log_that_ends_before_the_reader_is_read_again_from_its_start(world: World) -> None:
    """By numbers: as text, 9-0 would come after 10-0."""
    streamer, consumer = world.streamer(), world.consumer()
    world.take(1, 2)
    drain(streamer)
    log = world.log()
    first, second = (entry.fields for entry in log.read(START, 2))
    log.start_anew()
    log.command("XADD", world.stream, "10-0", *second)
    catch_up(consumer)
    log.start_anew()
    log.command("XADD", world.stream, "9-0", *first)
    assert consumer.run_once().rewound
    assert consumer.run_once().skipped == 1
    assert exact(world, consumer)


def test_what_is_sent_around_a_read_is_no_gap_and_no_strangers(world: World) -> None:
    """So the ids that were drawn are asked for after the read, and what was sent before it."""
    consumer, streamer = world.consumer(), world.streamer()
    read = consumer._log.read

    def send() -> None:
        consumer._log.read = read  # type: ignore[method-assign]
        world.take(5)
        drain(streamer)

    def sent_before(*arguments: Any) -> list[Entry]:
        send()
        return read(*arguments)

    def sent_after(*arguments: Any) -> list[Entry]:
        found = read(*arguments)
        send()
        return found

    for read_around in (sent_before, sent_after):
        consumer._log.read = read_around  # type: ignore[method-assign,assignment]
        done = consumer.run_once()
        assert (len(done.records), done.healed, done.ignored.total) == (1, [], 0)


def test_a_gap_ends_where_the_lower_of_two_looks_has_it(world: World) -> None:
    """Between them, the database may have been replaced by one that has sent less."""
    first, _, third, *_ = world.send(1, 2, 3, 4, 5)
    consumer = world.consumer(batch_size=1)
    consumer.run_once()
    for entry in world.log().read("0-0", 10):
        world.log().redis.xdel(world.stream, entry.redis_id)
    world.connection.execute("UPDATE streamer_state SET last_sent_id = %s", [third])
    [healed] = consumer.run_once().healed
    assert healed.gap == Gap(first, third)


def test_a_tail_of_one_ride_is_healed(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    streamer._log.appending = lambda *_: nullcontext()  # type: ignore[method-assign,assignment]
    world.take(5)
    drain(streamer)
    assert len(consumer.run_once().healed) == 1
    assert consumer.standing == world.truth


def test_a_gap_whose_rides_are_gone_is_healed(world: World) -> None:
    """As of a consumer that begins where old rides were deleted."""
    world.send(1, 2)
    flush(world)
    world.connection.execute("DELETE FROM rides")
    world.send(4)
    assert exact(world)


def test_an_idle_consumer_has_no_open_transaction_and_does_not_poll_fast(world: World) -> None:
    assert 0.1 <= IDLE_ROUND <= 0.9  # a missing tail is to be healed within about a second
    world.service("consumers.totals", "idle").says("stands at")
    eventually(lambda: b"blocked_clients:1" in bytes(world.log().redis.info("clients")))  # type: ignore[arg-type]
    states = "SELECT state FROM pg_stat_activity WHERE application_name ^@ 'reader total idle'"

    def is_idle() -> bool:
        looks = (world.connection.execute(states).fetchall() for _ in range(20))
        return all(look == [("idle",)] for look in looks)

    eventually(is_idle, "a consumer that does nothing")
    began, reads = time.monotonic(), reads_so_far(world)
    eventually(lambda: reads_so_far(world) >= reads + 4, "four more rounds")
    assert time.monotonic() - began >= 3 * IDLE_ROUND * 0.9


def reads_so_far(world: World) -> int:
    """How often Redis was asked for entries."""
    with redis.Redis.from_url(world.redis.url) as control:
        return int(control.info("commandstats")["cmdstat_xread"]["calls"])


def test_a_consumer_waits_for_its_servers(world: World) -> None:
    consumer = world.service("consumers.totals", "consumer0", CRASH_RATE="0.3").says("stands at")
    world.service("streamer", DOUBLE_SEND_RATE="0.3").says("leading")
    for disaster in (world.postgres, world.redis):
        world.take(*range(1, 50))
        disaster.kill()
        consumer.says("trying again")
        disaster.start()
        world.take(*range(1, 50))
        eventually(lambda: world.standing() == world.truth)
    assert consumer.stop() == 0
