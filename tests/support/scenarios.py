"""Scenarios for the tests of chaos' judges: each plays on real servers, and returns findings."""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from decimal import Decimal
from typing import Any

import redis

from consumers.rollup.dirty import MarksLost
from consumers.rollup.lead import Lead
from consumers.rollup.minutes import SESSION
from lab.chaos.books import statements
from lab.chaos.books.judge import check
from lab.chaos.books.tables import broken, left_over
from lab.chaos.drifts import prepare
from lab.chaos.evidence import Answer, Ask, Evidence, read_final_state
from lab.chaos.receiver import Mood, Receiver
from rocket_rides.log import Staged
from rocket_rides.terms import Term
from tests.support.disasters import flush
from tests.support.entries import RIDE
from tests.support.receipts import SECRET, USUALLY, Colleague
from tests.support.rollup import send_at
from tests.support.world import PATIENCE, World, catch_up, drain, take, transaction

Scenario = Callable[[World], list[str]]
LONGEST = 1.2  # seconds that a worker gets for receipts that never come to an end
ROUNDS = 3
MINUTE = "2026-11-22 12:00:30Z"
HASTY = USUALLY._replace(attempts=100, claim_after=0.2, sweep_after=0.1)


def ask(distance: int | str | Decimal, ride: int) -> Ask:
    """A ride that was asked for and answered."""
    metres, now = Decimal(distance), time.monotonic()
    return Ask(metres, whole=True, answers=[Answer(ride, metres, now, now)])


def findings(
    world: World,
    asks: list[Ask],
    settled: Iterable[str] = (statements.COUNTED,),
    left: Iterable[str] = (),
    **others: Any,
) -> list[str]:
    """The findings of the judge of the books."""
    connection = world.connect()
    prepare(connection)
    found = [*broken(connection, (*statements.AT_ANY_MOMENT, *settled)), *left]
    return check(Evidence(asks, read_final_state(world.connect()), found=found, **others))


def out_of_order(world: World) -> list[str]:
    """A transaction draws a low number and commits after higher ones."""
    streamer, consumer = world.streamer(), world.consumer()
    with transaction(world) as slow:
        [first] = take(slow, 1)
        [second] = world.take(2)
        drain(streamer)
        catch_up(consumer)
        slow.commit()
    [third] = world.take(3)
    drain(streamer)
    catch_up(consumer)
    return findings(world, [ask(1, first), ask(2, second), ask(3, third)])


def two_batches(world: World) -> list[str]:
    """A consumer counts one batch, and then another."""
    streamer, consumer = world.streamer(), world.consumer()
    asks = []
    for distance in (1, 2):
        asks += [ask(distance, ride) for ride in world.take(distance)]
        drain(streamer)
        catch_up(consumer)
    return findings(world, asks)


def a_lost_log(world: World) -> list[str]:
    """The log is flushed before the consumer has read it."""
    streamer, consumer = world.streamer(), world.consumer()
    asks = [ask(d, ride) for d, ride in enumerate(world.take(1, 2, 3), start=1)]
    drain(streamer)
    flush(world)
    [last] = world.take(4)
    drain(streamer)
    catch_up(consumer)
    return findings(world, [*asks, ask(4, last)])


def a_batch_sent_again(world: World) -> list[str]:
    """A full batch is in the log twice."""
    streamer, consumer = world.streamer(), world.consumer(batch_size=2)
    asks = [ask(d, ride) for d, ride in enumerate(world.take(1, 2), start=1)]
    streamer.run_once(double_send=True)
    catch_up(consumer)
    return findings(world, asks)


STRANGER = Term("0123456789abcdef", 0)


def another_fleet(world: World) -> list[str]:
    """Another fleet writes to the same stream, with the same ids."""
    streamer, consumer = world.streamer(), world.consumer()
    asks = []
    for number in (1, 2, 3):
        data = f'{{"id": {number}, "distance": {number * 7}}}'
        world.log().append([Staged(number, RIDE, data)], number - 1, STRANGER)
        asks += [ask(number, ride) for ride in world.take(number)]
        drain(streamer)
        catch_up(consumer)
    return findings(world, asks)


def send_in_one_minute(world: World, *distances: str) -> list[Ask]:
    """Take and send rides of one minute; returns them as asked for and answered."""
    rides = send_at(world, *((MINUTE, distance) for distance in distances))
    return [ask(distance, ride) for distance, ride in zip(distances, rides, strict=True)]


def left(world: World) -> list[str]:
    """What a fleet that has settled has left undone."""
    with redis.Redis.from_url(world.redis.url) as client:
        return left_over(world.connection, client, world.stream)


def minutes(world: World) -> list[str]:
    """A minute gets rides, is computed, and gets more."""
    lead = Lead(world.connect(**SESSION), world.log())
    asks: list[Ask] = []
    for distance in ("1", "2"):
        asks += send_in_one_minute(world, distance)
        for _ in range(ROUNDS):
            lead.reader.run_once()
            with suppress(MarksLost):
                lead.indexer.run_once(lead.reader.at.position)
    return findings(world, asks, settled=[statements.ROLLED_UP], left=left(world))


def delivered(
    world: World, asks: list[Ask], first: Mood = Mood.WELL, longest: float | None = None
) -> list[str]:
    """Let a worker deliver until every receipt has its outcome, or time is up.

    The receiver is in its `first` mood until the first request has come.
    """
    receiver = Receiver()
    receiver.secret = SECRET
    receiver.start()
    worker = Colleague(world, receiver.url, "worker", HASTY)
    with ExitStack() as ending, ExitStack() as failing:
        ending.callback(receiver.stop)
        ending.callback(worker.close)
        failing.enter_context(receiver.failing(first))
        deadline = time.monotonic() + (longest or LONGEST)
        while time.monotonic() < deadline:
            worker.read()
            worker.deliver()
            if receiver.deliveries:
                failing.close()
            if world.value("SELECT complete_to FROM receipts_state") >= world.truth[0]:
                break
    settled = [statements.DELIVERED, statements.OUTCOMES]
    return findings(world, asks, settled, left=left(world), deliveries=receiver.deliveries)


def a_receiver_at_work(world: World) -> list[str]:
    """The receiver accepts two receipts, and never the third."""
    return delivered(world, send_in_one_minute(world, "1", "2", "100.9"))


def a_receiver_that_fails(world: World) -> list[str]:
    """The receiver hangs up in the middle of its first answer."""
    asks = send_in_one_minute(world, "1")
    return delivered(world, asks, first=Mood.CUTTING, longest=PATIENCE)


def a_flushed_log(world: World) -> list[str]:
    """The log is flushed before any worker has read it."""
    asks = send_in_one_minute(world, "1")
    flush(world)
    return delivered(world, asks)
