"""The drifts that chaos makes: Postgres alone says whether one is still there."""

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import cast

import pytest

from lab.chaos.drifts import MINUTE, OUTCOME, TOTAL, Drift, Drifts, Proved, figures, read_drifts
from lab.chaos.fleet import CONSUMERS, Fleet
from tests.support.resets import ask
from tests.support.rollup import hurry, is_complete, lead, send_at
from tests.support.world import World, catch_up

RIGHT = 10.0  # metres of all rides
FIRST = datetime(2026, 3, 1, 10, 1, tzinfo=UTC)
OUTCOMES = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, 'delivered', 1, now(), now() FROM rides
"""
COMPLETE = "UPDATE receipts_state SET complete_to = 4"
PROVED = """
    INSERT INTO reconciliations (last_ride_id, total_distance, rides, duration_seconds, compared)
    VALUES (4, 10, 4, 1, '{"rollup": {"proved_upto": 4}, "receipts": {"proved_upto": 3}}')
"""
ASK = """
    INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id) VALUES (1, %s, 1)
"""


@pytest.fixture
def drifts(world: World) -> Drifts:
    """Four rides, in three minutes, that are counted, rolled up, and have their outcomes."""
    send_at(
        world, *((str(FIRST + timedelta(minutes=n)), n + 1) for n in (0, 1, 2)), (str(FIRST), 4)
    )
    for name in CONSUMERS:
        catch_up(world.consumer(name))
    hurry(lead(world))
    assert is_complete(world)
    world.connection.execute(OUTCOMES)
    world.connection.execute(COMPLETE)
    drifts = Drifts(cast(Fleet, world))
    drifts.prepare()
    return drifts


def make(drifts: Drifts, kind: str, seed: int = 1) -> Drift:
    drift = drifts.make(kind, random.Random(seed))
    assert drift
    assert drift.tried < drift.settled
    return drift


def there(drifts: Drifts) -> frozenset[str]:
    look = drifts.look()
    assert look
    return look.there


def test_a_total_has_a_millimetre_too_much_until_it_is_reset(world: World, drifts: Drifts) -> None:
    drift = make(drifts, TOTAL)
    assert world.standing(drift.victim) == (4, Decimal("10.001"))
    assert there(drifts) == {drift.token}
    assert drifts.make(TOTAL, random.Random(1)) is None  # not yet again
    ask(world, upto=4, name=drift.victim)
    world.consumer(drift.victim).run_once()
    assert world.standing(drift.victim) == (4, Decimal(10))
    assert there(drifts) == frozenset()
    again = make(drifts, TOTAL)
    assert (again.victim, again.mark) == (drift.victim, "1")
    assert there(drifts) == {again.token}


@pytest.mark.parametrize("seed", range(4))
def test_a_minute_is_wrong_until_it_is_computed_anew(
    world: World, drifts: Drifts, seed: int
) -> None:
    drift = make(drifts, MINUTE, seed)
    assert there(drifts) == {drift.token}
    rides, metres = figures(drift.mark)
    wrong = "SELECT count(*) FROM ride_minutes WHERE (minute, rides, distance) = (%s, %s, %s)"
    assert world.value(wrong, drift.victim, rides, metres) == 1
    assert not is_complete(world)
    world.connection.execute(PROVED)
    world.connection.execute(ASK, [drift.victim])
    hurry(lead(world))
    assert is_complete(world)
    assert there(drifts) == frozenset()
    again = {
        (other.victim, other.mark)
        for other in (drifts.make(MINUTE, random.Random(n)) for n in range(9))
        if other
    }
    assert again
    assert (drift.victim, drift.mark) not in again


def test_an_outcome_is_gone_until_there_is_another(world: World, drifts: Drifts) -> None:
    drift = make(drifts, OUTCOME)
    assert drift.mark == "delivered"
    has = f"SELECT count(*) FROM receipts WHERE ride_id = {drift.victim}"
    assert world.value(has) == 0
    assert there(drifts) == {drift.token}
    world.connection.execute(OUTCOMES + f" WHERE id = {drift.victim}")
    assert there(drifts) == frozenset()
    others = {make(drifts, OUTCOME, seed).victim for seed in range(3)}
    assert others == {"1", "2", "3", "4"} - {drift.victim}
    assert drifts.make(OUTCOME, random.Random(1)) is None  # each ride once


def test_what_a_rollback_undoes_is_not_there(world: World, drifts: Drifts) -> None:
    """As a restore does, it takes the drift and what is known of it."""
    drift = make(drifts, TOTAL)
    world.connection.execute("DELETE FROM chaos.drifts")
    assert there(drifts) == frozenset()
    assert drift.token in drifts.made
    assert read_drifts(world.connection) == []


def test_a_night_has_to_come_across_what_it_compares(world: World, drifts: Drifts) -> None:
    made = {kind: make(drifts, kind).token for kind in (TOTAL, MINUTE, OUTCOME)}

    def due(after: Proved, upto: Proved) -> set[str]:
        look = drifts.look(after, upto)
        assert look
        return {kind for kind, token in made.items() if token in look.due}

    everything = {TOTAL, MINUTE, OUTCOME}
    assert due(Proved(), Proved(4, 4)) == everything
    assert due(Proved(), Proved()) == {TOTAL}
    assert due(Proved(4, 4), Proved(4, 4)) == {TOTAL}  # nothing new
    send_at(world, (str(FIRST), 1))
    assert due(Proved(), Proved(4, 4)) == everything - (
        {MINUTE} if drifts.made[made[MINUTE]].victim == "2026-03-01T10:01:00Z" else set()
    )


def test_the_newest_run_says_what_is_proved(world: World, drifts: Drifts) -> None:
    world.connection.execute(PROVED)
    look = drifts.look()
    assert look
    assert look.proved == Proved(4, 3)


def test_a_mistake_of_ours_is_not_taken_for_a_postgres_that_is_away(
    world: World, drifts: Drifts
) -> None:
    world.connection.execute("DROP VIEW chaos.known_drifts")
    with pytest.raises(Exception, match="known_drifts"):
        drifts.look()
