"""The nightly look at the receipts and at the outbox: what is wrong is named, and delivered.

Rides go by their numbers here: 1 is the first one of the database's cell.
"""

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import psycopg
import pytest

from analytics.emit import SET_BACK, emit, set_back
from analytics.proofs import outbox, receipts
from analytics.proofs.receipts import SAMPLE, SAMPLED, apart, sample
from analytics.result import OutboxVerdict, Proved, ReceiptsVerdict, Result, Stretch, WrongRides
from tests.support.interrupted import interrupted
from tests.support.numbers import moved, numbered
from tests.support.receipts import SOON, Staff, sent
from tests.support.world import World, eventually, take

RIDES = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"
OUTCOMES = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, CASE id %% 3 WHEN 0 THEN 'dead' ELSE 'delivered' END, 1, now(), now()
    FROM rides WHERE id <= cell_start() + %s
"""
COMPLETE = """
    UPDATE receipts_state SET inbox_to = greatest(inbox_to, upto), complete_to = upto
    FROM (SELECT cell_start() + %s AS upto) ride
"""
DELETE = "DELETE FROM receipts WHERE ride_id - cell_start() = ANY(%s)"
DELETE_RIDES = "DELETE FROM rides WHERE id - cell_start() = ANY(%s)"
FORGET = """
    UPDATE receipts SET outcome = NULL, decided_at = NULL WHERE ride_id - cell_start() = ANY(%s)
"""
STRANGER = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT ride_id, 'delivered', 1, now(), now() FROM unnest(%s::bigint[]) ride_id
"""
NOTHING = Proved()


@pytest.fixture
def delivered(world: World) -> World:
    """Thirty rides, of which the first twenty have their outcomes, up to complete_to."""
    world.connection.execute(RIDES, [30])
    world.connection.execute("UPDATE streamer_state SET last_sent_id = cell_start() + 30")
    world.connection.execute(OUTCOMES, [20])
    world.connection.execute(COMPLETE, [20])
    return world


def last(world: World) -> int:
    """The last position that was sent."""
    return world.value("SELECT last_sent_id FROM streamer_state")


def prove(
    world: World,
    known: Proved = NOTHING,
    connection: psycopg.Connection | None = None,
    seed: int = 1,
) -> ReceiptsVerdict:
    """Look at what is not yet known to be right."""
    known, chance = moved(known, world.start), random.Random(seed)
    connection = connection or world.connection
    return numbered(receipts.prove(connection, known, last(world), chance), world.start)


def night(world: World, *, anew: bool = False) -> ReceiptsVerdict:
    """Look, as a run does that goes on from the last one or begins anew; emit what was found."""
    known = NOTHING if anew else receipts.proved(world.connection)
    verdict = receipts.prove(world.connection, known, last(world), random.Random(1))
    result = Result(datetime.now(UTC), receipts=verdict)
    with world.connection.transaction():
        emit(world.connection, result, [], [])
        set_back(world.connection, result, [])
    return numbered(verdict, world.start)


def proved(world: World) -> Proved:
    """By the last run."""
    return moved(receipts.proved(world.connection), -world.start)


@pytest.mark.proves("receipt-repaired")
@pytest.mark.parametrize("loss", [DELETE, FORGET], ids=["deleted", "forgotten"])
def test_a_ride_without_an_outcome_is_named_and_looked_at_by_the_sweep(
    delivered: World, loss: str
) -> None:
    assert night(delivered).agrees
    delivered.connection.execute(loss, [[7, 12, 25]])
    assert night(delivered) == ReceiptsVerdict(upto=20)  # neither new nor, with so few, sampled
    verdict = night(delivered, anew=True)
    assert verdict == ReceiptsVerdict(upto=20, rides=20, missing=WrongRides(2, (7, 12)))
    assert not verdict.agrees
    complete_to = "SELECT complete_to - cell_start() FROM receipts_state WHERE set_backs = 1"
    assert delivered.value(complete_to) == 6
    assert proved(delivered) == Proved(20, (Stretch(0, 20),))


@pytest.mark.parametrize("loss", [DELETE, FORGET], ids=["deleted", "forgotten"])
def test_the_sweep_and_the_queue_deliver_what_a_night_calls_missing(
    staff: Staff, loss: str
) -> None:
    """And nothing else once more; then it is proved."""
    world = staff.world
    taken = sent(world, 20)
    worker = staff.worker("one", **SOON)
    worker.until(lambda: staff.complete_to == 20)
    world.connection.execute(loss, [[7, 12]])
    assert night(world).missing == WrongRides(2, (7, 12))
    watermark = "SELECT least(inbox_to, complete_to) - cell_start() FROM receipts_state"
    assert world.value(watermark) == 6
    worker.until(lambda: staff.complete_to == 20)
    assert [ride for ride in taken if staff.receiver.rides[ride] > 1] == [taken[6], taken[11]]
    assert staff.outcomes() == 20
    assert world.value("SELECT sum(swept) FROM receipts_workers") == (2 if loss == DELETE else 0)
    assert night(world) == ReceiptsVerdict(upto=20, rides=20)
    assert proved(world) == Proved(20)


def test_what_is_wrong_is_the_same_each_night_whatever_is_sampled(
    delivered: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An approval is of all that is missing."""
    monkeypatch.setattr(receipts, "SAMPLED", 5)
    monkeypatch.setattr(receipts, "SAMPLE", 1)
    some = WrongRides(4, (2, 7, 12, 17))
    missing = ReceiptsVerdict(upto=20, rides=20, missing=some)
    strange = ReceiptsVerdict(upto=20, rides=16, strange=some)
    for change, verdict in ((DELETE, missing), (DELETE_RIDES, strange)):
        with delivered.connection.transaction(force_rollback=True):
            delivered.connection.execute(change, [[*some.ids]])
            for seed in range(9):
                assert prove(delivered, Proved(20), seed=seed) == verdict


def test_a_fault_makes_only_those_nights_look_at_everything_that_see_it(
    delivered: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one after its repair, nor one while the sweep is on its way up from there."""
    monkeypatch.setattr(receipts, "PIECE", 5)
    delivered.connection.execute(DELETE, [[7]])
    assert night(delivered) == ReceiptsVerdict(upto=20, rides=20, missing=WrongRides(1, (7,)))
    left = Proved(20, (Stretch(5, 10),))
    assert proved(delivered) == left
    assert night(delivered) == ReceiptsVerdict(upto=6, rides=1)  # the sweep has not come by yet
    assert proved(delivered) == left
    delivered.connection.execute(COMPLETE, [20])
    assert night(delivered) == ReceiptsVerdict(upto=20, rides=20, missing=WrongRides(1, (7,)))
    delivered.connection.execute(STRANGER, [[delivered.start + 7]])
    delivered.connection.execute(
        OUTCOMES.replace("WHERE", "WHERE id > cell_start() + 20 AND"), [28]
    )
    delivered.connection.execute(COMPLETE, [28])
    assert night(delivered) == ReceiptsVerdict(upto=28, rides=13)
    assert proved(delivered) == Proved(28)


def test_an_outcome_far_away_does_not_make_a_night_look_at_all_in_between(
    delivered: World,
) -> None:
    for number, stranger in enumerate((-(10**10), -(2**63) + 1, -(2**63), 2**63 - 1)):
        delivered.connection.execute(STRANGER, [[stranger]])
        strange = WrongRides(1, (stranger - delivered.start,))
        looked_at = 0 if number else 20
        assert night(delivered) == ReceiptsVerdict(upto=20, rides=looked_at, strange=strange)
        assert proved(delivered) == Proved(20)
        assert night(delivered) == ReceiptsVerdict(upto=20, strange=strange)
        delivered.connection.execute("DELETE FROM receipts WHERE ride_id = %s", [stranger])


def test_what_a_repair_kept_from_being_judged_is_not_called_proved(delivered: World) -> None:
    delivered.connection.execute(DELETE, [[15]])

    def set_it_back() -> None:
        delivered.connection.execute(SET_BACK, [delivered.start + 13])

    with interrupted(delivered, receipts.LOOK, set_it_back) as connection:
        verdict = prove(delivered, connection=connection)
    assert verdict == ReceiptsVerdict(upto=12, rides=12)
    assert verdict.proved == Proved(20, (Stretch(0, 20),))
    delivered.connection.execute(COMPLETE, [20])  # and the sweep has overlooked it
    assert prove(delivered, verdict.proved).missing == WrongRides(1, (15,))


def test_an_outcome_of_no_ride_is_named_until_it_is_gone(delivered: World) -> None:
    delivered.connection.execute("DELETE FROM rides WHERE id = cell_start() + 9")
    strangers = [delivered.start + number for number in (-3, 0, 99)]
    delivered.connection.execute(STRANGER, [strangers])
    verdict = night(delivered)
    assert verdict == ReceiptsVerdict(upto=20, rides=19, strange=WrongRides(4, (-3, 0, 9, 99)))
    assert not verdict.agrees
    assert night(delivered) == verdict
    assert delivered.value("SELECT set_backs FROM receipts_state") == 0  # no sweep can help
    delivered.connection.execute(DELETE, [[-3, 0, 9, 99]])
    assert night(delivered).agrees


def test_few_are_named_and_all_are_counted(delivered: World) -> None:
    delivered.connection.execute("DELETE FROM receipts")
    assert prove(delivered).missing == WrongRides(20, tuple(range(1, 11)))


def test_what_is_above_complete_to_is_the_workers_business(delivered: World) -> None:
    """Also where a repair sets it back between the first look and the next."""
    delivered.connection.execute(DELETE, [[15]])
    delivered.connection.execute(COMPLETE, [14])
    assert prove(delivered, Proved(20)).agrees
    start = delivered.start
    stretch = {"after": start, "upto": start + 20}
    row = delivered.connection.execute(receipts.LOOK, stretch).fetchone()
    assert row == (start + 14, 14, 0, None, 0, None)


def test_a_watermark_past_all_that_was_sent_hides_no_ride_that_comes_later(
    delivered: World,
) -> None:
    """Nor, from the next night on, one that an earlier version has believed."""
    delivered.connection.execute(
        OUTCOMES.replace("WHERE", "WHERE id > cell_start() + 20 AND"), [30]
    )
    delivered.connection.execute(COMPLETE, [10**9])
    assert night(delivered) == ReceiptsVerdict(upto=30, rides=30)
    assert proved(delivered) == Proved(30)
    delivered.connection.execute(RIDES, [5])
    delivered.connection.execute("UPDATE streamer_state SET last_sent_id = cell_start() + 35")
    assert prove(delivered, Proved(30)).missing == WrongRides(5, (31, 32, 33, 34, 35))
    assert prove(delivered, Proved(10**9)).proved == Proved(35)


def test_a_sample_is_of_different_stretches_below_the_new_rides() -> None:
    chances = [random.Random(seed) for seed in range(99)]
    chosen = {stretch for chance in chances for stretch in sample(0, 10 * SAMPLED, chance)}
    assert len(chosen) == 10
    assert {upto - after for after, upto in chosen} == {SAMPLED}
    assert max(upto for _, upto in chosen) == 10 * SAMPLED
    for upto, number in ((SAMPLED - 1, 0), (3 * SAMPLED, 3), (99 * SAMPLED, SAMPLE)):
        found = sample(0, upto, random.Random(1))
        assert len(set(found)) == number
        assert found == sorted(found)


def test_no_ride_is_counted_twice(delivered: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be it in the sample, and one of those that are to be looked at again."""
    monkeypatch.setattr(receipts, "SAMPLED", 5)
    assert prove(delivered, Proved(15, (Stretch(3, 6),))).rides == 3 + 5 + 5
    assert apart([Stretch(0, 3), Stretch(2, 4), Stretch(6, 9)], [Stretch(3, 6)]) == [
        Stretch(0, 3),
        Stretch(6, 9),
    ]


def test_a_staged_record_that_is_wrong_is_named(world: World) -> None:
    """And one that is right agrees."""
    world.take("1.001", 2, "999999999.999")
    assert outbox.prove(world.connection) == OutboxVerdict(staged=3)
    assert OutboxVerdict(staged=3).agrees
    for change, kind, rides in (
        ("UPDATE streamer_state SET last_sent_id = cell_start() + 1", "sent", [1]),
        ("DELETE FROM rides WHERE id = cell_start() + 2", "orphans", [2]),
        (
            "UPDATE staged_log_records SET data = jsonb_set(data, '{distance}', '3.001')"
            " WHERE id = cell_start() + 3",
            "different",
            [3],
        ),
        (
            "UPDATE staged_log_records SET data = data - 'distance' WHERE id > cell_start() + 1",
            "different",
            [2, 3],
        ),
    ):
        with world.connection.transaction(force_rollback=True):
            world.connection.execute(change.encode())
            verdict = outbox.prove(world.connection)
        named = WrongRides(len(rides), tuple(world.start + ride for ride in rides))
        assert verdict == OutboxVerdict(3, **{kind: named})
        assert not verdict.agrees


def test_rides_that_are_taken_and_sent_meanwhile_are_no_drift(world: World) -> None:
    """A ride commits with its record, and a record leaves with last_sent: no look is in between."""
    streamer, connection = world.streamer(batch_size=3), world.connect()
    over, verdicts = threading.Event(), list[OutboxVerdict]()

    def go_on() -> None:
        while not over.is_set():
            take(connection, 1, 2)
            streamer.run_once()

    def have_met() -> bool:
        """Looks, and rides between the two."""
        verdicts.append(outbox.prove(world.connection))
        return sum(verdict.staged > 0 for verdict in verdicts) >= 20

    with ThreadPoolExecutor(1) as beside:
        going_on = beside.submit(go_on)
        try:
            eventually(have_met, pause=0)
        finally:
            over.set()
        going_on.result()
    assert {verdict.agrees for verdict in verdicts} == {True}
