"""Minutes that a reconciliation found wrong: the rollup itself computes them anew, on request."""

import pytest

from consumers.rollup import indexer, minutes
from consumers.rollup.minutes import COMPUTE, SESSION
from consumers.rollup.recomputations import PENDING
from consumers.rollup.step import INDEXING, MARKING
from tests.support.rollup import complete_to, hurry, is_complete, lead, send_at
from tests.support.world import World, transaction
from unified_log.faults import InjectedCrash, crash_at

MINUTES = [f"2026-03-01 10:0{number}:00+00" for number in range(5)]
WRONG = {
    "a millimetre more": "UPDATE ride_minutes SET distance = distance + 0.001 WHERE minute = %s",
    "missing": "DELETE FROM ride_minutes WHERE minute = %s",
    "labelled with a ride to come": (
        "UPDATE ride_minutes SET rides = 9, upto = 1e12 WHERE minute = %s"
    ),
}
RECONCILE = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    VALUES (1, 1, 1, 1, '{}') RETURNING id
"""
ASK = "INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id) VALUES (%s, %s, %s)"
EXPLAIN = "EXPLAIN (ANALYZE, BUFFERS, FORMAT json)"
POISON = """
    ALTER TABLE ride_minutes ADD CONSTRAINT poison
    CHECK (minute <> '2026-03-01 10:01Z' OR rides < 1) NOT VALID
"""


def ask(world: World, *minutes: str, lowest: int = 1) -> None:
    """Ask for these minutes, as a reconciliation does."""
    reconciliation = world.value(RECONCILE)
    for minute in minutes:
        world.connection.execute(ASK, [reconciliation, minute, lowest])


def statuses(world: World) -> list[str]:
    found = world.connection.execute("SELECT status FROM recomputations ORDER BY minute, id")
    return [status for (status,) in found]


def rolled_up(world: World) -> None:
    """Two rides in each of the minutes."""
    send_at(world, *((minute, 1) for minute in MINUTES), *((minute, 2) for minute in MINUTES))
    hurry(lead(world))
    assert is_complete(world)


def test_minutes_that_were_asked_for_are_right_again(world: World) -> None:
    rolled_up(world)
    before, wrong = complete_to(world), MINUTES[: len(WRONG)]
    for change, minute in zip(WRONG.values(), wrong, strict=True):
        world.connection.execute(change, [minute])
    leading = lead(world)
    hurry(leading)
    assert not is_complete(world)  # nobody has asked
    ask(world, *wrong)
    ask(world, *wrong[1:], MINUTES[3])
    hurry(leading)
    assert is_complete(world)
    assert statuses(world) == ["done"] * 6
    assert complete_to(world) == before
    computed = leading.indexer.computed
    hurry(leading)  # they are asked for no more
    assert leading.indexer.computed == computed


def test_more_minutes_than_one_batch_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "LARGEST", 2)
    rolled_up(world)
    world.connection.execute("DELETE FROM ride_minutes")
    ask(world, *MINUTES)
    leading = lead(world)
    for done in (2, 4, 5):
        hurry(leading)
        assert statuses(world).count("done") == done
    assert is_complete(world)


def test_requested_minutes_whose_rows_are_locked_leave_the_rollup_its_pause(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be as many requests as one round reads, and each of them in vain."""
    monkeypatch.setattr(indexer, "LARGEST", 2)
    monkeypatch.setattr(minutes, "LONGEST_LOCK", "50ms")
    rolled_up(world)
    ask(world, *MINUTES[:2])
    leading = lead(world)
    with transaction(world) as holding:
        holding.execute("SELECT FROM ride_minutes FOR UPDATE")
        goes_on = [leading.indexer.run_once(0) for _ in range(4)]
    assert goes_on == [True, True, True, False]  # both, then each, are tried; then all are known


def test_requests_that_were_fulfilled_long_ago_cost_nothing(world: World) -> None:
    """The question is put in every round."""
    ask(world, *MINUTES)
    many = "timestamptz '2001-01-01 00:00Z' + interval '1 minute' * number"
    world.connection.execute(
        "INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id, status, changed_at)"
        f" SELECT 1, {many}, 1, 'done', now() FROM generate_series(1, 5000) number"
    )
    connection = world.connect(**SESSION)
    asked = connection.execute(f"{EXPLAIN} {PENDING}", [9]).fetchone()
    assert asked
    assert asked[0][0]["Plan"]["Shared Hit Blocks"] < 20
    values = {"generation": lead(world).generation.name, "minutes": MINUTES}
    computed = connection.execute(f"{EXPLAIN} {COMPUTE}", values).fetchone()
    assert "recomputations_open" in str(computed)
    assert statuses(world).count("done") == 5005


def test_a_request_survives_a_crash_at_any_step_and_rides_go_on(world: World) -> None:
    rolled_up(world)
    for number, step in enumerate([*MARKING, *INDEXING], start=1):
        world.connection.execute(WRONG["a millimetre more"], [MINUTES[1]])
        ask(world, MINUTES[1])
        send_at(world, (MINUTES[2], 5))
        with pytest.raises(InjectedCrash), crash_at(step):
            hurry(lead(world))
        hurry(lead(world))
        assert is_complete(world)
        assert statuses(world) == ["done"] * number


def test_a_minute_that_cannot_be_computed_is_set_aside_and_right_once_it_can_be(
    world: World,
) -> None:
    rolled_up(world)
    before = complete_to(world)
    world.connection.execute(WRONG["labelled with a ride to come"], [MINUTES[1]])
    world.connection.execute(POISON)
    world.connection.execute(WRONG["a millimetre more"], [MINUTES[2]])
    ask(world, MINUTES[1], MINUTES[2], lowest=2)
    leading = lead(world)
    hurry(leading)
    assert statuses(world) == ["set aside", "done"]
    assert world.value("SELECT lowest_ride_id FROM set_aside_minutes") == 2
    send_at(world, (MINUTES[4], "0.5"))
    hurry(leading)
    assert complete_to(world) == before  # held: a minute below is known to be wrong
    world.connection.execute("ALTER TABLE ride_minutes DROP CONSTRAINT poison")
    world.connection.execute("UPDATE set_aside_minutes SET retry = true")
    hurry(leading)
    assert is_complete(world)
    assert statuses(world) == ["done", "done"]
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 0
