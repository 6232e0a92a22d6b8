"""Scenarios for the proofs of chaos, and ways to break the code in the test's own process.

Each scenario plays on real servers, and returns what the checker finds.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import pytest

from consumers import digest
from consumers.digest import Gap
from consumers.reader import Reader
from consumers.round import Healed
from lab.chaos.backup import Backup
from lab.chaos.checker import check
from lab.chaos.evidence import Evidence, Told, read_final_state
from lab.chaos.journal import Answer, Ask
from lab.chaos.observer import LogReader
from lab.chaos.restore import Restore
from rocket_rides.log import Record, decode
from rocket_rides.terms import Range, Term, Terms
from streamer.barrier import Barrier
from tests.support.clusters import restore, world_of_its_own
from tests.support.disasters import flush
from tests.support.world import World, catch_up, drain, take, transaction

Patch = pytest.MonkeyPatch
Scenario = Callable[[World], list[str]]


def ask(distance: int, ride: int) -> Ask:
    """A ride that was asked for and answered."""
    metres, now = Decimal(distance), time.monotonic()
    return Ask(metres, whole=True, answers=[Answer(ride, metres, now, now)])


def findings(
    world: World, asks: list[Ask], told: Iterable[Told | Record] = (), **others: Any
) -> list[str]:
    """The checker's, by what the log `told`, or tells in the end."""
    log = [t if isinstance(t, Told) else Told(t, 0) for t in told or world.records()]
    final = read_final_state(world.connect())
    return check(Evidence(asks, final, log, names=("consumer0",), **others))


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


def skip_the_barrier(patch: Patch) -> None:
    patch.setattr(Barrier, "settled", lambda barrier: barrier._last_drawn())


def more_than_a_batch(world: World) -> list[str]:
    """Five records are staged, and a batch has two."""
    streamer, consumer = world.streamer(batch_size=2), world.consumer()
    asks = [ask(d, ride) for d, ride in enumerate(world.take(1, 2, 3, 4, 5), start=1)]
    drain(streamer)
    [last] = world.take(6)
    drain(streamer)
    catch_up(consumer)
    return findings(world, [*asks, ask(6, last)])


def delete_more_than_was_sent(patch: Patch) -> None:
    # Past the product's own guard too, which compares the number of rows.
    everything = "WITH gone AS (DELETE FROM staged_log_records RETURNING id)"
    patch.setattr("streamer.drain.DELETE_SENT", f"{everything} SELECT FROM gone WHERE id = ANY(%s)")


def two_batches(world: World) -> list[str]:
    """A consumer counts one batch, and then another."""
    streamer, consumer = world.streamer(), world.consumer()
    asks = []
    for distance in (1, 2):
        asks += [ask(distance, ride) for ride in world.take(distance)]
        drain(streamer)
        catch_up(consumer)
    return findings(world, asks)


def move_the_checkpoint_alone(patch: Patch) -> None:
    patch.setattr(
        "consumers.totals.total.ADD",
        "SELECT total_distance FROM consumer_states WHERE %s > 0 AND name = %s",
    )


def a_lost_log(world: World) -> list[str]:
    """The log is flushed before the consumer has read it."""
    streamer, consumer = world.streamer(), world.consumer()
    asks = [ask(d, ride) for d, ride in enumerate(world.take(1, 2, 3), start=1)]
    drain(streamer)
    seen = world.records()
    flush(world)
    [last] = world.take(4)
    drain(streamer)
    catch_up(consumer)
    return findings(world, [*asks, ask(4, last)], seen + world.records())


def heal_nothing(patch: Patch) -> None:
    def heal(_reader: object, gap: Gap) -> Healed:
        return Healed(gap, 0, Decimal(0))

    patch.setattr(Reader, "_heal", heal)


def a_batch_sent_again(world: World) -> list[str]:
    """A full batch is in the log twice."""
    streamer, consumer = world.streamer(), world.consumer(batch_size=2)
    asks = [ask(d, ride) for d, ride in enumerate(world.take(1, 2), start=1)]
    streamer.run_once(double_send=True)
    catch_up(consumer)
    return findings(world, asks)


def count_again(patch: Patch) -> None:
    def believe(entries: list[Any], last_ride_id: int, *others: Any) -> digest.Digest:
        at = decode(entries[0].fields).prev if entries else last_ride_id
        return digest.digest(entries, at, *others)

    patch.setattr("consumers.follower.digest", believe)


STRANGER = Term("0123456789abcdef", 0)


def stranger_writes(world: World, number: int) -> Record:
    """An entry of another fleet's."""
    distance = number * 7
    data = f'{{"id": {number}, "distance": {distance}}}'
    world.log().append([(number, data)], number - 1, STRANGER)
    return Record(number, number - 1, Decimal(distance), STRANGER.name.encode())


def another_fleet(world: World) -> list[str]:
    """It writes to the same stream, and has the same ids."""
    streamer, consumer = world.streamer(), world.consumer()
    asks, foreign = [], set()
    for number in (1, 2, 3):
        foreign.add(stranger_writes(world, number))
        asks += [ask(number, ride) for ride in world.take(number)]
        drain(streamer)
        catch_up(consumer)
    return findings(world, asks, foreign=foreign)


def a_restored_database(world: World) -> list[str]:
    """Two rides are in the log, and in the database no more; three new ones come."""
    with world_of_its_own(world.redis, world.folder) as own:
        reader = LogReader(lambda: own.redis.url, own.stream)
        reader.start()
        asks = take_and_count(own, 1)
        backup = Backup(own.postgres, "first")
        asks += take_and_count(own, 100, 200)
        restore(own, backup, recovery_signal=False)
        restored = Restore(backup.began, time.monotonic())
        asks += take_and_count(own, 10, 20, 30)
        reader.end()
        return findings(own, asks, reader.told, restores=[restored])


def take_and_count(world: World, *distances: int) -> list[Ask]:
    rides = world.take(*distances)
    asks = [ask(distance, ride) for distance, ride in zip(distances, rides, strict=True)]
    drain(world.streamer())
    catch_up(world.consumer())
    return asks


class Anything(dict[bytes, Range]):
    """Every term there may be, as far as ids were drawn."""

    def __init__(self, last_drawn: int) -> None:
        self._all = Range(0, last_drawn)

    def get(self, *_: object) -> Range:
        return self._all


def believe_in_every_term(patch: Patch) -> None:
    patch.setattr(Terms, "update", lambda _terms, _rows, last_drawn: Anything(last_drawn))


def a_lost_tail(world: World) -> list[str]:
    """The log has lost the newest rides, and another fleet never lets a read be empty."""
    streamer, consumer = world.streamer(), world.consumer()
    asks = [ask(1, ride) for ride in world.take(1)]
    drain(streamer)
    streamer._log.appending = lambda *_: nullcontext()  # type: ignore[method-assign,assignment]
    asks += [ask(d, ride) for d, ride in enumerate(world.take(2, 3), start=2)]
    drain(streamer)
    foreign = set()
    for number in (1, 2, 3):
        foreign.add(stranger_writes(world, number))
        consumer.run_once()
    return findings(world, asks, foreign=foreign)


def close_gaps_when_idle_alone(patch: Patch) -> None:
    def sort_out(entries: list[Any], *others: Any) -> digest.Digest:
        result = digest.digest(entries, *others)
        if entries:
            result.close_gap = lambda upto: None  # type: ignore[method-assign]
        return result

    patch.setattr("consumers.follower.digest", sort_out)
