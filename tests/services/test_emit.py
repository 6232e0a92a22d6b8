"""The result of a night as rows: what was compared, and a reset for whoever was wrong."""

from datetime import UTC, datetime
from decimal import Decimal

from analytics.emit import emit, past_runs
from analytics.result import Result, Tally
from analytics.runs import begin_run
from tests.support.world import World

# A reader that has the name of a total, and none itself.
OF_ANOTHER_KIND = "INSERT INTO checkpoints (kind, name) VALUES ('longest', 'short')"


def test_who_was_wrong_is_asked_to_reset_and_nobody_else(world: World) -> None:
    for name in ("right", "short", "long", "stray"):
        world.consumer(name)
    world.connection.execute(OF_ANOTHER_KIND)
    result = Result(datetime.now(UTC), 2, Tally(2, Decimal(7)))
    with world.connection.transaction():
        emit(world.connection, result, ["short", "long", "stray", "gone"], [])
    assert result.resets == ["long", "short", "stray"]
    asked = world.connection.execute("SELECT consumer_name FROM resets ORDER BY 1").fetchall()
    assert asked == [("long",), ("short",), ("stray",)]


def test_a_past_run_tells_what_became_of_each_part(world: World) -> None:
    """Runs that died, or are under way, have nothing to tell."""
    for status in ("agreed", "held", "died"):
        run = begin_run(world.connection)
        if status != "died":
            verdicts = {"totals": status}
            run.complete(status, 2, verdicts, [], [], 0, None, 0, {})
    found = past_runs(world.connection)
    assert [(run.status, run.verdicts) for run in found] == [
        ("held", {"totals": "held"}),
        ("agreed", {"totals": "agreed"}),
    ]
    begin_run(world.connection)
    dead = world.connection.execute("SELECT status FROM runs ORDER BY id").fetchall()
    assert dead == [("agreed",), ("held",), ("failed",), ("running",)]
