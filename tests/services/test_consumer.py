"""Consumers: every ride counts once, whatever the log does."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest
import redis

from consumers.checkpoint import Position
from consumers.committing import TOO_SOON
from consumers.gaps import Gap
from consumers.reader import LONGEST_REST, SMALLEST_BATCH, Reader
from consumers.round import Step
from consumers.running import IDLE_ROUND
from consumers.totals.total import Total
from rocket_rides.errors import Overtaken
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.log import START, Entry
from streamer.drain import Step as SendStep
from tests.support.clock import Clock
from tests.support.disasters import cut_newest, flush, restart_redis
from tests.support.world import Consumer, World, catch_up, drain, eventually, exact

pytestmark = pytest.mark.stream_servers


def add(world: World, data: bytes, prev: bytes = b"0") -> None:
    world.log().redis.xadd(world.stream, {"data": data, "prev": prev})


@pytest.mark.proves("one-transaction")
@pytest.mark.parametrize("step", Step)
def test_a_crash_at_any_step_counts_every_ride_once(world: World, step: Step) -> None:
    world.take("0.001", "0.002")
    drain(world.streamer())
    with pytest.raises(InjectedCrash), crash_at(step):
        world.consumer().run_once()
    expected = (2, Decimal("0.003")) if step is Step.AFTER_COMMIT else (0, Decimal(0))
    assert world.standing() == expected
    assert exact(world, world.consumer())


def test_totals_are_exact_where_binary_floats_are_not(world: World) -> None:
    world.take(*["0.1"] * 1000, "999999999.999")
    drain(world.streamer())
    assert catch_up(world.consumer()).total == Decimal("1000000099.999")


@pytest.mark.proves("counts-once")
def test_two_processes_under_one_name_never_count_a_ride_twice(world: World) -> None:
    world.take(1, 2)
    drain(world.streamer())
    one, other = world.consumer("same"), world.consumer("same")
    one.run_once()
    with pytest.raises(Overtaken):
        other.run_once()
    assert world.standing("same") == (2, Decimal(3))

    for _ in range(2):
        world.service("consumers", "same").says("stands at")
    world.service("streamer").says("leading")
    for n in range(100):
        world.take(n + 1)
    eventually(lambda: world.standing("same") == world.truth)


HOSTILE = {
    "not JSON": (b"ride", b"0"),
    "not UTF-8": (b'{"id": 1, "distance": 5, "who": "\xff"}', b"0"),
    "NaN": (b'{"id": 1, "distance": NaN}', b"0"),
    "infinite": (b'{"id": 1, "distance": 1e999}', b"0"),
    "too fine": (b'{"id": 1, "distance": 0.0001}', b"0"),
    "negative": (b'{"id": 1, "distance": -5}', b"0"),
    "a string": (b'{"id": 1, "distance": "5"}', b"0"),
    "an array": (b"[1, 5]", b"0"),
    "an id beyond bigint": (b'{"id": 99999999999999999999999, "distance": 5}', b"0"),
    "a boolean id": (b'{"id": true, "distance": 5}', b"0"),
    "a fractional id": (b'{"id": 1.5, "distance": 5}', b"0"),
    "prev not below id": (b'{"id": 1, "distance": 5}', b"1"),
    "prev negative": (b'{"id": 1, "distance": 5}', b"-1"),
    "prev no number": (b'{"id": 1, "distance": 5}', b"1_0"),
    "deeply nested": (b"[" * 100_000, b"0"),
    "a deeply nested distance": (b'{"id": 1, "distance": ' + b"[" * 100_000, b"0"),
    "a deeply nested stranger": (b'{"id": 1, "x": ' + b"[" * 100_000, b"0"),
    "a distance of many digits": (b'{"id": 1, "distance": 1.' + b"0" * 9999 + b"1}", b"0"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_invalid_entry_is_set_aside_once_and_stops_nothing(world: World, kind: str) -> None:
    data, prev = HOSTILE[kind]
    consumer = world.consumer()
    add(world, data, prev)
    world.take(7)
    drain(world.streamer())
    assert exact(world, consumer)
    world.connection.execute("UPDATE checkpoints SET last_redis_id = '0-0'")  # read it again
    assert exact(world, world.consumer())
    [row] = world.connection.execute("SELECT consumer_name, fields FROM dead_letters").fetchall()
    assert row == ("consumer0", [b"data", data, b"prev", prev])


@pytest.mark.parametrize("number", [1, 4611686018427387904])
def test_an_id_that_was_never_drawn_is_not_believed(world: World, number: int) -> None:
    consumer = world.consumer()
    add(world, b'{"id": %d, "distance": 5}' % number)
    done = consumer.run_once()
    assert (done.set_aside, done.records, done.unbelieved.total) == ([], [], 1)
    world.take(7)
    drain(world.streamer())
    assert exact(world, consumer)


def test_a_record_counts_only_once_the_streamer_has_committed(world: World) -> None:
    """It may never: the entry may be of a database that was restored to an earlier time since."""
    world.take(1, 2)
    consumer, streamer = world.consumer(), world.streamer()
    streamer.run_once()
    world.take(3)
    with pytest.raises(InjectedCrash), crash_at(SendStep.AFTER_SEND):
        streamer.run_once()
    assert consumer.run_once().records
    assert consumer.run_once().held
    assert consumer.total == 3
    drain(world.streamer())
    assert exact(world, consumer)


def test_what_was_in_the_log_already_is_looked_at_without_a_wait(
    world: World, clock: Clock
) -> None:
    consumer = world.consumer()
    world.take(1)
    drain(world.streamer())
    assert consumer.run_once(wait=1).records
    assert clock.now == 0


def test_a_look_before_the_commit_makes_the_next_wait_longer(world: World, clock: Clock) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    consumer._log.read = clock.goes(1, consumer._log.read)  # type: ignore[method-assign]
    world.take(1)
    with pytest.raises(InjectedCrash), crash_at(SendStep.AFTER_SEND):
        streamer.run_once()
    first = consumer.committing.seconds
    assert consumer.run_once(wait=1).held
    longer = consumer.committing.seconds
    assert (clock.now, longer) == (1 + first, first * TOO_SOON)
    drain(world.streamer())
    assert consumer.run_once(wait=1).records
    assert clock.now == 2 + first + longer
    assert consumer.committing.seconds < longer


def test_nobody_waits_for_the_commit_of_what_was_there_before(world: World, clock: Clock) -> None:
    consumer = world.consumer()
    world.take(1)
    drain(world.streamer())
    assert consumer.run_once(wait=1).records
    assert clock.now == 0


def test_a_consumer_begins_with_a_checkpoint_and_its_total_of_one_moment(world: World) -> None:
    """A process of the same name counts a batch between the two looks, or would."""
    world.take(1)
    drain(world.streamer())
    first = world.consumer("same")
    first.run_once()
    world.take(2)
    drain(world.streamer())
    counting = threading.Thread(target=first.run_once)
    waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"

    class LateTotal(Total):
        def load(self, at: Position) -> None:
            counting.start()
            eventually(lambda: world.value(waiting) or not counting.is_alive())
            super().load(at)

    second = Reader(world.log(), LateTotal(world.connect(), "same"))
    counting.join()
    assert (second.at.ride_id, second.handler.distance) == (1, Decimal(1))
    assert first.standing == world.truth


def test_a_consumer_that_dies_while_it_begins_has_not_begun(world: World) -> None:
    class Mortal(Total):
        def begin(self) -> None:
            raise InjectedCrash(Step.BEFORE_COMMIT)

    with pytest.raises(InjectedCrash):
        Reader(world.log(), Mortal(world.connect(), "consumer0"))
    world.take(1)
    drain(world.streamer())
    assert exact(world)


def test_a_checkpoint_never_moves_without_its_total(world: World) -> None:
    """Not even past rides that are sent again, or past nonsense: the total may come back."""
    consumer = world.consumer()
    world.take(5)
    drain(world.streamer())
    catch_up(consumer)
    before = consumer.at
    world.connection.execute("DELETE FROM consumer_states")
    [entry] = world.log().read("0-0", 10)
    pairs = dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
    world.log().redis.xadd(world.stream, pairs)  # type: ignore[arg-type]
    add(world, b"nonsense")
    with pytest.raises(Overtaken, match="the total of consumer0 is gone"):
        consumer.run_once()
    [row] = world.connection.execute("SELECT last_redis_id, last_ride_id FROM checkpoints")
    assert row == before


def test_an_entry_without_our_fields_is_set_aside(world: World) -> None:
    world.log().redis.xadd(world.stream, {b"\xff": b"\x00"})
    done = world.consumer().run_once()
    assert [found.reason for found in done.set_aside] == ["no field 'data'"]


def test_a_ride_hidden_by_a_corrupted_entry_is_healed(world: World) -> None:
    world.take(1)
    streamer = world.streamer()
    drain(streamer)
    log = world.log().redis
    log.delete(world.stream)
    add(world, b'{"id": 1, "distance": ', b"0")  # ride 1, cut short
    world.take(2)
    drain(streamer)
    assert catch_up(world.consumer()).total == 3


def test_a_brand_new_consumer_on_a_trimmed_log_heals(world: World) -> None:
    early = world.consumer("early")
    world.take(*range(1, 2001))
    drain(world.streamer())
    catch_up(early)
    world.log().trim_to(100, exactly=True)
    late = world.consumer("late")
    [healed] = late.run_once().healed
    assert healed.rides == 1900
    assert catch_up(late).total == early.total


DISASTERS = [flush, restart_redis, cut_newest]


@pytest.mark.proves("gap-healed")
@pytest.mark.parametrize("disaster", DISASTERS)
@pytest.mark.parametrize("more", [True, False], ids=["rides follow", "no ride follows"])
@pytest.mark.parametrize("caught_up", [True, False], ids=["caught up", "behind"])
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
        world.take(100, 200)
        drain(world.streamer())
    assert exact(world, world.consumer())


@pytest.fixture
def behind(world: World) -> Consumer:
    """A consumer with more to read than a batch, of the smallest after which it rests."""
    world.take(*range(1, SMALLEST_BATCH + 2))
    drain(world.streamer())
    return world.consumer(batch_size=SMALLEST_BATCH)


@pytest.mark.parametrize(("took", "rest"), [(0.01, 0.02), (10, LONGEST_REST)])
def test_whoever_is_behind_rests_between_batches_but_not_for_long(
    behind: Consumer, clock: Clock, took: float, rest: float
) -> None:
    behind._ask = clock.goes(took, behind._ask)  # type: ignore[method-assign]
    behind.run_once()
    assert behind.pause == pytest.approx(rest)
    catch_up(behind)
    assert behind.pause == 0


def test_nobody_rests_from_waiting(behind: Consumer, clock: Clock) -> None:
    behind._log.read = clock.goes(100, behind._log.read)  # type: ignore[method-assign]
    behind.run_once()
    assert (behind.behind, behind.pause) == (True, 0)


def test_nobody_rests_after_batches_of_a_few(world: World) -> None:
    consumer = world.consumer(batch_size=1)
    world.take(1, 2, 3)
    drain(world.streamer())
    consumer.run_once()
    assert (consumer.behind, consumer.pause) == (True, 0)


def test_a_log_restored_to_an_earlier_state_is_read_again_from_its_start(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    world.take(1, 2)
    drain(streamer)
    backup = world.log().redis.dump(world.stream)
    world.take(3)
    drain(streamer)
    catch_up(consumer)
    world.log().redis.restore(world.stream, 0, backup, replace=True)  # type: ignore[arg-type]
    assert consumer.run_once().rewound
    assert consumer.run_once().skipped == 2
    assert exact(world, consumer)


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


def test_what_comes_between_the_two_looks_of_an_idle_round_is_no_gap(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    world.take(5)
    read = consumer._log.read

    def read_nothing_and_then_send(*arguments: Any) -> list[Entry]:
        consumer._log.read = read  # type: ignore[method-assign]
        found = read(*arguments)
        drain(streamer)
        return found

    consumer._log.read = read_nothing_and_then_send  # type: ignore[method-assign,assignment]
    done = consumer.run_once()
    assert (len(done.records), done.healed) == (1, [])


def test_a_ride_sent_right_before_the_read_is_no_strangers(world: World) -> None:
    """What is known of the ids that were drawn must be younger than the entries."""
    consumer, streamer = world.consumer(), world.streamer()
    read = consumer._log.read

    def send_and_then_read(*arguments: Any) -> list[Entry]:
        consumer._log.read = read  # type: ignore[method-assign]
        world.take(5)
        drain(streamer)
        return read(*arguments)

    consumer._log.read = send_and_then_read  # type: ignore[method-assign,assignment]
    done = consumer.run_once()
    assert (len(done.records), done.unbelieved.total) == (1, 0)


def test_a_gap_ends_where_the_lower_of_two_looks_has_it(world: World) -> None:
    """Between them, the database may have been replaced by one that has sent less."""
    world.take(1, 2, 3, 4, 5)
    drain(world.streamer())
    consumer = world.consumer(batch_size=1)
    consumer.run_once()
    for entry in world.log().read("0-0", 10):
        world.log().redis.xdel(world.stream, entry.redis_id)
    world.connection.execute("UPDATE streamer_state SET last_sent_id = 3")
    [healed] = consumer.run_once().healed
    assert healed.gap == Gap(1, 3)


def test_a_tail_of_one_ride_is_healed(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    streamer._log.appending = lambda *_: nullcontext()  # type: ignore[method-assign,assignment]
    world.take(5)
    drain(streamer)
    assert len(consumer.run_once().healed) == 1
    assert consumer.standing == world.truth


def test_a_gap_whose_rides_are_gone_is_healed(world: World) -> None:
    """As of a consumer that begins where old rides were deleted."""
    world.take(1, 2)
    drain(world.streamer())
    flush(world)
    world.connection.execute("DELETE FROM rides")
    world.take(4)
    drain(world.streamer())
    assert exact(world)


def test_an_idle_consumer_has_no_open_transaction_and_does_not_poll_fast(world: World) -> None:
    assert 0.1 <= IDLE_ROUND <= 0.9  # a missing tail is to be healed within about a second
    world.service("consumers", "idle").says("stands at")
    eventually(lambda: b"blocked_clients:1" in bytes(world.log().redis.info("clients")))  # type: ignore[arg-type]
    states = (
        "SELECT state, count(*) FROM pg_stat_activity WHERE application_name ^@ 'consumer idle'"
    )
    for _ in range(20):
        assert world.connection.execute(f"{states} GROUP BY state").fetchall() == [("idle", 1)]


def test_a_missing_tail_is_healed_though_no_ride_follows(world: World) -> None:
    consumer = world.service("consumers", "consumer0").says("stands at")
    world.take(1, 2, 3)
    streamer = world.streamer()
    streamer._log.appending = lambda *_: nullcontext()  # type: ignore[method-assign,assignment]
    drain(streamer)  # "sent", to a log that lost it
    consumer.says("healed a gap")
    assert world.standing() == world.truth


def test_a_consumer_waits_for_its_servers(world: World) -> None:
    consumer = world.service("consumers", "consumer0", CRASH_RATE="0.3").says("stands at")
    world.service("streamer", DOUBLE_SEND_RATE="0.3").says("leading")
    for disaster in (world.postgres, world.redis):
        world.take(*range(1, 50))
        disaster.kill()
        consumer.says("trying again")
        disaster.start()
        world.take(*range(1, 50))
        eventually(lambda: world.standing() == world.truth)
    assert consumer.stop() == 0


def test_a_consumer_says_why_its_session_was_ended(world: World) -> None:
    consumer = world.service("consumers", "consumer0").says("stands at")
    world.connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name ^@ 'consumer consumer0'"
    )
    consumer.says("terminating connection due to administrator command; trying again")


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb"])
def test_a_bad_name_is_refused_with_one_line(world: World, name: str) -> None:
    consumer = world.service("consumers", name)
    assert consumer.process.wait(30) == 2
    said = consumer.output.read_text().splitlines()
    assert said[-1].startswith("python -m consumers: error: argument name: a consumer's name has")


@pytest.mark.parametrize("name", ["x" * 64, "Ünïcode 'quoted\" name", "-- drop"])
def test_any_other_name_will_do(world: World, name: str) -> None:
    world.take(5)
    drain(world.streamer())
    assert catch_up(world.consumer(name)).total == 5


def test_a_redis_that_is_away_raises_and_commits_nothing(world: World) -> None:
    consumer = world.consumer()
    world.redis.stop()
    with pytest.raises(redis.RedisError):
        consumer.run_once()
    world.redis.start()
    assert world.standing() == (0, Decimal(0))
