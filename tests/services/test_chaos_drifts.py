"""The drifts that chaos makes: Postgres alone says whether one is still there, and was found."""

import random
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import cast

import pytest

from demo.embedded.servers import Redis
from lab.chaos.books.nightly_statements import AT_ANY_MOMENT
from lab.chaos.books.statements import REPAIRED
from lab.chaos.books.tables import broken
from lab.chaos.drifts import MINUTE, OUTCOME, STATEMENTS, TOTAL, Drifts, prepare
from lab.chaos.fleet import CONSUMERS, Fleet
from lab.chaos.trace.judge import judge
from tests.support.recorded import recorded_world, recording
from tests.support.resets import ask
from tests.support.rollup import hurry, is_complete, lead, send_at
from tests.support.world import World, catch_up, drain

FIRST = datetime(2026, 3, 1, 10, 1, tzinfo=UTC)
OUTCOMES = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, 'delivered', 1, now(), now() FROM rides
"""
COMPLETE = "UPDATE receipts_state SET inbox_to = 4, complete_to = 4"
NIGHT = """
    INSERT INTO reconciliations (last_ride_id, total_distance, rides, duration_seconds, compared)
    VALUES (4, 10, 4, 1, jsonb_build_object(
        'rollup', '{"proved_upto": 4}'::jsonb, 'outbox', '{}'::jsonb,
        'receipts', jsonb_build_object('proved_upto', 4, 'missing', %s::int),
        'consumers', jsonb_build_array(jsonb_build_object(
            'name', %s::text, 'drift', %s::numeric, 'last_ride_id', 4, 'stray', %s::boolean
        ))
    )) RETURNING id
"""
RECOMPUTE = """
    INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id) VALUES (%s, %s, 1)
"""
MADE = "SELECT victim, mark FROM chaos.drifts WHERE kind = %s"


def settled(world: World) -> Drifts:
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
    prepare(world.connection)
    return Drifts(cast(Fleet, world))


@pytest.fixture
def drifts(world: World) -> Drifts:
    return settled(world)


@pytest.fixture
def recorded(redis: Redis, prepared: Path, tmp_path: Path) -> Iterator[World]:
    with recorded_world(redis, prepared, tmp_path) as world:
        yield world


def make(drifts: Drifts, world: World, kind: str, seed: int = 1) -> tuple[str, str]:
    """Its victim and its mark."""
    before = world.connection.execute(MADE, [kind]).fetchall()
    assert drifts.make(kind, random.Random(seed))
    [made] = {*world.connection.execute(MADE, [kind])} - {*before}
    return made[0], made[1]


def night(
    world: World, *, missing: int = 0, total: str = "", drift: str = "0", stray: bool = False
) -> int:
    """The nightly job's row; returns its id."""
    return world.value(NIGHT, missing, total or CONSUMERS[0], drift, stray)


def test_a_total_has_a_millimetre_too_much_until_it_is_reset(world: World, drifts: Drifts) -> None:
    victim, mark = make(drifts, world, TOTAL)
    assert world.standing(victim) == (4, Decimal("10.001"))
    assert mark == "0"
    assert broken(world.connection, [REPAIRED]) != []
    assert drifts.make(TOTAL, random.Random(1)) is None  # not yet again
    ask(world, upto=4, name=victim)
    world.consumer(victim).run_once()
    assert world.standing(victim) == (4, Decimal(10))
    assert broken(world.connection, [REPAIRED]) == []
    assert make(drifts, world, TOTAL) == (victim, "1")
    assert broken(world.connection, [REPAIRED]) != []


@pytest.mark.parametrize("seed", range(4))
def test_a_minute_is_wrong_until_it_is_computed_anew(
    world: World, drifts: Drifts, seed: int
) -> None:
    victim, _ = make(drifts, world, MINUTE, seed)
    assert broken(world.connection, [REPAIRED]) != []
    assert not is_complete(world)
    world.connection.execute(RECOMPUTE, [night(world), victim])
    hurry(lead(world))
    assert is_complete(world)
    assert broken(world.connection, [REPAIRED]) == []
    while drifts.make(MINUTE, random.Random(seed)):
        pass
    victims = [victim for victim, _ in world.connection.execute(MADE, [MINUTE])]
    assert len(victims) == len({*victims})  # each minute once


def test_an_outcome_is_gone_until_there_is_another(world: World, drifts: Drifts) -> None:
    victim, mark = make(drifts, world, OUTCOME)
    assert mark == "delivered"
    assert world.value(f"SELECT count(*) FROM receipts WHERE ride_id = {victim}") == 0
    assert broken(world.connection, [REPAIRED]) != []
    world.connection.execute(OUTCOMES + f" WHERE id = {victim}")
    assert broken(world.connection, [REPAIRED]) == []
    others = {make(drifts, world, OUTCOME, seed)[0] for seed in range(3)}
    assert others == {"1", "2", "3", "4"} - {victim}
    assert drifts.make(OUTCOME, random.Random(1)) is None  # each ride once


def test_what_a_rollback_undoes_is_not_there(world: World, drifts: Drifts) -> None:
    """As a restore does, it takes the drift and what is known of it."""
    make(drifts, world, TOTAL)
    world.connection.execute("DELETE FROM chaos.drifts")
    assert broken(world.connection, [REPAIRED]) == []
    assert drifts.made == 1


def test_what_nobody_made_wrong_may_not_be_called_wrong(world: World, drifts: Drifts) -> None:
    assert broken(world.connection, AT_ANY_MOMENT) == []
    one = night(world, missing=1, stray=True)
    world.connection.execute(RECOMPUTE, [one, FIRST])
    ask(world, upto=4, name=CONSUMERS[0])
    reset, minute, missing, stray, *_ = broken(world.connection, AT_ANY_MOMENT)
    assert f"a reset of {CONSUMERS[0]}" in reset
    assert minute == "the nightly job called the minute 10:01 wrong, and nobody had made it so"
    assert missing == f"night {one} found 1 receipts missing, of 0"
    assert stray == f"night {one} found a checkpoint past every ride: {CONSUMERS[0]}"


def test_what_was_made_wrong_may_be(world: World, drifts: Drifts) -> None:
    total, minute = (make(drifts, world, kind)[0] for kind in (TOTAL, MINUTE))
    make(drifts, world, OUTCOME)
    one = night(world, missing=1, total=total, drift="0.001")
    world.connection.execute(RECOMPUTE, [one, minute])
    world.connection.execute(
        "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (%s, %s)", [one, total]
    )
    assert broken(world.connection, AT_ANY_MOMENT) == []


def test_a_night_that_proves_less_is_reported(world: World, drifts: Drifts) -> None:
    one = night(world)
    world.connection.execute("UPDATE reconciliations SET compared = compared - 'outbox'")
    assert broken(world.connection, AT_ANY_MOMENT) == [f"night {one} has not compared everything"]


@pytest.mark.parametrize("is_there", [True, False], ids=["before the recording", "in it"])
def test_the_judge_of_the_trace_allows_what_is_made_wrong_and_repaired(
    recorded: World, is_there: bool
) -> None:
    with ExitStack() as until:
        tape = None if is_there else until.enter_context(recording(recorded))
        drifts = settled(recorded)
        victims = {kind: make(drifts, recorded, kind)[0] for kind in (TOTAL, MINUTE, OUTCOME)}
        tape = tape or until.enter_context(recording(recorded))
        repair(recorded, victims)
    verdict = judge(lambda: iter(tape.steps))
    assert verdict.refused == ""
    assert verdict.met["makes something wrong"] == (0 if is_there else 3)
    assert verdict.met["resets"] == 1


def test_the_judge_of_the_trace_refuses_a_drift_that_is_not_what_it_says(recorded: World) -> None:
    with recording(recorded) as tape:
        drifts = settled(recorded)
        with pytest.MonkeyPatch.context() as patch:
            more = STATEMENTS[TOTAL].replace("+ 0.001", "+ 0.002")
            patch.setitem(STATEMENTS, TOTAL, more)
            make(drifts, recorded, TOTAL)
    assert "a drift is of a millimetre" in judge(lambda: iter(tape.steps)).refused


def repair(world: World, victims: dict[str, str]) -> None:
    """As consumers do when a night has asked them; and one more ride is counted by all."""
    one = night(world)
    world.connection.execute(RECOMPUTE, [one, victims[MINUTE]])
    ask(world, upto=4, name=victims[TOTAL])
    world.consumer(victims[TOTAL]).run_once()
    world.connection.execute(OUTCOMES + f" WHERE id = {victims[OUTCOME]}")
    world.take(5)
    drain(world.streamer())
    for name in CONSUMERS:
        catch_up(world.consumer(name))
    hurry(lead(world))


def test_a_mistake_of_ours_is_not_taken_for_a_postgres_that_is_away(
    world: World, drifts: Drifts
) -> None:
    world.connection.execute("DROP VIEW chaos.known_drifts")
    with pytest.raises(Exception, match="known_drifts"):
        drifts.make(TOTAL, random.Random(1))
