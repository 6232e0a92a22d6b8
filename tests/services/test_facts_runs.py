"""What is gathered of the reconciliation's runs."""

import json
from datetime import UTC, datetime

from tests.support.looks import seen
from tests.support.world import World
from watch.runs import Finding

COMPLETED = """
    INSERT INTO runs (status, ended_at, position, verdicts, findings, oldest_look)
    VALUES (%s, now() - interval '2 hours', 521, %s, %s, now() - interval '20 days')
"""
FAILED = "INSERT INTO runs (status, ended_at, reason) VALUES ('failed', now(), %s)"
FOUND = [
    {"kind": "minutes_wrong", "part": "rollup", "held": False, "about": "14:03 is off"},
    {"kind": "rides_changed", "part": "warehouse", "held": True, "about": "ride 17 is another"},
    {"kind": "minutes_wrong", "part": "rollup", "held": False, "about": "14:04 is off", "more": 1},
]


def test_before_the_first_run_no_run_is_known(world: World) -> None:
    database = seen(world)
    assert (database.completed_run, database.failed_run, database.run_under_way) == (None,) * 3
    assert database.failed_runs == 0


def test_since_when_there_are_rides_to_reconcile_is_known_unless_the_first_has_no_time(
    world: World,
) -> None:
    assert seen(world).oldest_ride_at is None
    insert = "INSERT INTO rides (distance, created_at) VALUES (1, %s)"
    for moment in ("2020-01-02T03:04:05Z", "2020-01-03T03:04:05Z"):
        world.connection.execute(insert, [moment])
    assert seen(world).oldest_ride_at == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    world.connection.execute("UPDATE rides SET created_at = 'infinity'")
    assert seen(world).oldest_ride_at is None


def test_the_last_completed_run_is_known_whatever_came_after_it(world: World) -> None:
    agreed, held = json.dumps({"totals": "agreed"}), json.dumps({"warehouse": "held"})
    world.connection.execute(FAILED, ["long ago"])
    world.connection.execute(COMPLETED, ["agreed", agreed, "[]"])
    world.connection.execute(COMPLETED, ["held", held, json.dumps(FOUND)])
    run = seen(world).completed_run
    assert run
    assert (run.id, run.status, run.ride, run.verdicts) == (3, "held", 521, {"warehouse": "held"})
    assert [each.about for each in run.findings] == [
        "ride 17 is another", "14:03 is off", "14:04 is off"
    ]  # fmt: skip
    assert run.findings[0] == Finding("rides_changed", "warehouse", True, "ride 17 is another")
    assert (run.open, run.held) == ({"minutes_wrong": 2, "rides_changed": 1}, 1)
    assert run.oldest_look
    assert (run.at - run.oldest_look).days == 19
    assert not run.approved
    for reason in ("Spark is away", "Postgres is away"):
        world.connection.execute(FAILED, [reason])
    world.connection.execute("INSERT INTO runs DEFAULT VALUES")
    database = seen(world)
    assert database.completed_run == run
    assert database.failed_runs == 2
    assert database.failed_run
    assert (database.failed_run.id, database.failed_run.reason) == (5, "Postgres is away")
    assert database.run_under_way
    assert database.run_under_way.id == 6
    words = [event.words for event in database.happened if event.is_fault]
    assert "run 5 of the reconciliation failed: Postgres is away" in words


def test_what_a_person_has_approved_is_known_until_a_run_has_acted_on_it(world: World) -> None:
    world.connection.execute(COMPLETED, ["held", "{}", json.dumps(FOUND)])
    world.connection.execute(
        "INSERT INTO approvals (run_id, digest, reason, approved_by)"
        " VALUES (1, repeat('0', 64), 'ours', 'me')"
    )
    run = seen(world).completed_run
    assert run
    assert run.approved
    world.connection.execute("INSERT INTO runs DEFAULT VALUES")
    world.connection.execute("UPDATE approvals SET used_by = 2")
    run = seen(world).completed_run
    assert run
    assert not run.approved
