"""The nightly look at the receipts and at the outbox: what is wrong is named, and delivered."""

import random
import threading
from datetime import UTC, datetime

import pytest

from analytics.emit import emit
from analytics.proofs import outbox, proved_upto, receipts
from analytics.proofs.receipts import LOWEST, PIECE, SAMPLE, SAMPLED, Stretch, pieces, sample
from analytics.result import OutboxVerdict, ReceiptsVerdict, Result, Some
from tests.support.world import World, take

RIDES = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"
OUTCOMES = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at, dead_at)
    SELECT id, CASE id %% 3 WHEN 0 THEN 'dead' ELSE 'delivered' END, 1, now(), now(),
           CASE id %% 3 WHEN 0 THEN now() END
    FROM rides WHERE id <= %s
"""
COMPLETE = "UPDATE receipts_state SET complete_to = %s"
DELETE = "DELETE FROM receipts WHERE ride_id = ANY(%s)"
FORGET = """
    UPDATE receipts SET outcome = NULL, decided_at = NULL, dead_at = NULL WHERE ride_id = ANY(%s)
"""
STRANGER = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT ride_id, 'delivered', 1, now(), now() FROM unnest(%s::bigint[]) ride_id
"""


@pytest.fixture
def delivered(world: World) -> World:
    """Thirty rides, of which the first twenty have their outcomes, up to complete_to."""
    world.connection.execute(RIDES, [30])
    world.connection.execute("UPDATE streamer_state SET last_sent_id = 30")
    world.connection.execute(OUTCOMES, [20])
    world.connection.execute(COMPLETE, [20])
    return world


def prove(world: World, upto: int = 0) -> ReceiptsVerdict:
    return receipts.prove(world.connection, upto, random.Random(1))


def night(world: World) -> ReceiptsVerdict:
    """Look, as a run does that goes on from the last one; and emit what was found."""
    verdict = prove(world, proved_upto(world.connection, "receipts"))
    with world.connection.transaction():
        emit(world.connection, Result(datetime.now(UTC), receipts=verdict))
    return verdict


def test_receipts_that_are_complete_agree(delivered: World) -> None:
    verdict = prove(delivered)
    assert verdict == ReceiptsVerdict(upto=20, rides=20)
    assert verdict.agrees
    assert verdict.proved_upto == 20


@pytest.mark.parametrize("loss", [DELETE, FORGET])
def test_a_ride_without_an_outcome_is_named_and_looked_at_by_the_sweep(
    delivered: World, loss: str
) -> None:
    assert night(delivered).agrees
    delivered.connection.execute(loss, [[7, 12, 25]])
    assert night(delivered) == ReceiptsVerdict(upto=20)  # neither new nor, with so few, sampled
    verdict = prove(delivered)
    assert verdict == ReceiptsVerdict(upto=20, rides=20, missing=Some(2, (7, 12)))
    assert not verdict.agrees
    with delivered.connection.transaction():
        emit(delivered.connection, Result(datetime.now(UTC), receipts=verdict))
    assert delivered.value("SELECT complete_to FROM receipts_state WHERE mends = 1") == 6
    assert proved_upto(delivered.connection, "receipts") == 6


def test_the_next_night_begins_below_what_was_wrong(delivered: World) -> None:
    delivered.connection.execute(DELETE, [[7]])
    assert night(delivered).missing == Some(1, (7,))
    delivered.connection.execute(STRANGER, [[7]])  # delivered by the sweep, which then says so:
    delivered.connection.execute(COMPLETE, [20])
    assert night(delivered) == ReceiptsVerdict(upto=20, rides=14)
    assert night(delivered) == ReceiptsVerdict(upto=20)


def test_an_outcome_of_no_ride_is_named_until_it_is_gone(delivered: World) -> None:
    delivered.connection.execute("DELETE FROM rides WHERE id = 9")
    delivered.connection.execute(STRANGER, [[-3, 0, 99]])
    verdict = night(delivered)
    assert verdict == ReceiptsVerdict(upto=20, rides=19, strange=Some(4, (-3, 0, 9, 99)))
    assert not verdict.agrees
    assert night(delivered) == verdict
    assert delivered.value("SELECT mends FROM receipts_state") == 0  # no sweep can help
    delivered.connection.execute(DELETE, [[-3, 0, 9, 99]])
    assert night(delivered).agrees


def test_few_are_named_and_all_are_counted(delivered: World) -> None:
    delivered.connection.execute("DELETE FROM receipts")
    assert prove(delivered).missing == Some(20, tuple(range(1, 11)))


def test_rides_before_there_were_receipts_need_none(delivered: World) -> None:
    delivered.connection.execute("UPDATE receipts_state SET since = 10")
    delivered.connection.execute("DELETE FROM receipts WHERE ride_id <= 11")
    verdict = prove(delivered)
    assert verdict == ReceiptsVerdict(upto=20, rides=10, missing=Some(1, (11,)))
    with delivered.connection.transaction():
        emit(delivered.connection, Result(datetime.now(UTC), receipts=verdict))
    assert delivered.value("SELECT complete_to FROM receipts_state") == 10


def test_what_is_above_complete_to_is_the_workers_business(delivered: World) -> None:
    """Also where a mend sets it back between the first look and the next."""
    delivered.connection.execute(DELETE, [[15]])
    delivered.connection.execute(COMPLETE, [14])
    assert prove(delivered, 20).agrees
    row = delivered.connection.execute(receipts.LOOK, {"after": 0, "upto": 20}).fetchone()
    assert row == (14, 0, None, 0, None)


def test_every_ride_is_in_one_piece() -> None:
    upto = 2 * PIECE + 5
    assert list(pieces(3, 5)) == [Stretch(3, 5)]
    assert list(pieces(5, 5)) == []
    assert list(pieces(0, upto)) == [
        Stretch(LOWEST, PIECE),
        Stretch(PIECE, 2 * PIECE),
        Stretch(2 * PIECE, upto),
    ]


def test_a_sample_is_of_different_stretches_below_the_new_rides() -> None:
    chosen = {
        stretch for seed in range(99) for stretch in sample(10 * SAMPLED, random.Random(seed))
    }
    assert len(chosen) == 10
    assert {upto - after for after, upto in chosen} == {SAMPLED}
    assert max(upto for _, upto in chosen) == 10 * SAMPLED
    for upto, number in ((SAMPLED - 1, 0), (3 * SAMPLED, 3), (99 * SAMPLED, SAMPLE)):
        found = sample(upto, random.Random(1))
        assert len(set(found)) == number
        assert found == sorted(found)


def test_an_outbox_that_is_right_agrees(world: World) -> None:
    world.take("1.001", 2, "999999999.999")
    assert outbox.prove(world.connection) == OutboxVerdict(staged=3)
    assert outbox.prove(world.connection).agrees


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ("UPDATE streamer_state SET last_sent_id = 1", OutboxVerdict(3, sent=Some(1, (1,)))),
        ("DELETE FROM rides WHERE id = 2", OutboxVerdict(3, orphans=Some(1, (2,)))),
        (
            "UPDATE staged_log_records SET data = jsonb_set(data, '{distance}', '3.001')"
            " WHERE id = 3",
            OutboxVerdict(3, different=Some(1, (3,))),
        ),
        (
            "UPDATE staged_log_records SET data = data - 'distance' WHERE id >= 2",
            OutboxVerdict(3, different=Some(2, (2, 3))),
        ),
    ],
)
def test_a_staged_record_that_is_wrong_is_named(
    world: World, change: str, verdict: OutboxVerdict
) -> None:
    world.take(1, 2, 3)
    world.connection.execute(change)
    assert outbox.prove(world.connection) == verdict
    assert not verdict.agrees


def test_rides_that_are_taken_and_sent_meanwhile_are_no_drift(world: World) -> None:
    """A ride commits with its record, and a record leaves with last_sent: no look is in between."""
    streamer, connection = world.streamer(batch_size=3), world.connect()

    def go_on() -> None:
        for _ in range(100):
            take(connection, 1, 2)
            streamer.run_once()

    going_on = threading.Thread(target=go_on)
    going_on.start()
    verdicts = []
    while going_on.is_alive():
        verdicts.append(outbox.prove(world.connection))
    going_on.join()
    assert {verdict.agrees for verdict in verdicts} == {True}
    assert max(verdict.staged for verdict in verdicts) > 0
