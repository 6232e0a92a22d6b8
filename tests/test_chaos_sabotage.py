"""The proof can fail: each guarantee broken on purpose, in the test's own process, and reported.

Every scenario is also played unbroken: then the checker has nothing to say.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from chaos.checker import check
from chaos.evidence import Evidence, read_books
from chaos.ledger import Answer, Ask
from consumers import digest
from consumers.consumer import Consumer
from consumers.digest import Gap
from consumers.round import Healed
from rocket_rides.log import Record, decode
from streamer.barrier import Barrier
from tests.test_consumer import flush
from tests.world import World, catch_up, drain, take, transaction

Patch = pytest.MonkeyPatch


def ask(distance: int, ride: int) -> Ask:
    """A ride that was asked for and answered."""
    metres = Decimal(distance)
    return Ask(metres, whole=True, answers=[Answer(ride, metres)])


def findings(world: World, asks: list[Ask], records: list[Record] | None = None) -> list[str]:
    books = read_books(world.connect())
    return check(Evidence(asks, books, records or world.records(), names=("consumer0",)))


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
        "consumers.consumer.MOVE",
        """
        WITH moved AS (
            UPDATE checkpoints SET last_redis_id = %(redis_id)s, last_ride_id = %(ride_id)s
            WHERE name = %(name)s AND %(distance)s > 0
              AND last_redis_id = %(from_redis_id)s AND last_ride_id = %(from_ride_id)s
            RETURNING name
        )
        SELECT total_distance FROM consumer_states JOIN moved USING (name)
        """,
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
    def heal(_consumer: Consumer, gap: Gap) -> Healed:
        return Healed(gap, 0, Decimal(0))

    patch.setattr(Consumer, "_heal", heal)


def a_batch_sent_again(world: World) -> list[str]:
    """A full batch is in the log twice."""
    streamer, consumer = world.streamer(), world.consumer(batch_size=2)
    asks = [ask(d, ride) for d, ride in enumerate(world.take(1, 2), start=1)]
    streamer.run_once(double_send=True)
    catch_up(consumer)
    return findings(world, asks)


def count_again(patch: Patch) -> None:
    def believe(entries: list[Any], _last_ride_id: int, *others: Any) -> digest.Digest:
        return digest.digest(entries, decode(entries[0].fields).prev, *others)

    patch.setattr("consumers.consumer.digest", believe)


SABOTAGE: list[tuple[Callable[[World], list[str]], Callable[[Patch], None], list[str]]] = [
    (
        out_of_order,
        skip_the_barrier,
        ["consumer0's total is 5", "prev of ride 2 is 0, not 1", "1 records are left staged: [1]"],
    ),
    (
        more_than_a_batch,
        delete_more_than_was_sent,
        ["consumer0's total is 9", "prev of ride 6 is 2, not 5"],
    ),
    (two_batches, move_the_checkpoint_alone, ["consumer0's total is 0.000 m, not 3.000 m"]),
    (a_lost_log, heal_nothing, ["consumer0's total is 4.000 m, not 10.000 m (-6.000 m)"]),
    (a_batch_sent_again, count_again, ["consumer0's total is 6.000 m, not 3.000 m (+3.000 m)"]),
]


@pytest.mark.parametrize(("scenario", "sabotage", "expected"), SABOTAGE)
def test_sabotage_is_reported(
    world: World,
    monkeypatch: Patch,
    scenario: Callable[[World], list[str]],
    sabotage: Callable[[Patch], None],
    expected: list[str],
) -> None:
    sabotage(monkeypatch)
    found = "\n".join(scenario(world))
    for sentence in expected:
        assert sentence in found


@pytest.mark.parametrize("scenario", [scenario for scenario, _, _ in SABOTAGE])
def test_the_same_without_sabotage_is_found_to_be_right(
    world: World, scenario: Callable[[World], list[str]]
) -> None:
    assert scenario(world) == []
