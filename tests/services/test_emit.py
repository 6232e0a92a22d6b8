"""The result of a night as rows: what was compared, and a reset for whoever was wrong."""

from datetime import UTC, datetime
from decimal import Decimal

from analytics.emit import emit, past_runs
from analytics.result import Compared, Result, Tally
from tests.support.world import World

# A reader that has the name of a total, and none itself.
OF_ANOTHER_KIND = "INSERT INTO checkpoints (kind, name) VALUES ('longest', 'short')"


def test_who_was_wrong_is_asked_to_reset_and_nobody_else(world: World) -> None:
    for name in ("right", "short", "long", "stray"):
        world.consumer(name)
    world.connection.execute(OF_ANOTHER_KIND)
    exact = Decimal(7)
    compared = [
        Compared("right", 2, exact, exact),
        Compared("short", 2, exact - 1, exact),
        Compared("long", 2, exact + 1, exact),
        Compared("stray", 99, exact, exact, stray=True),
        Compared("gone", 2, Decimal(0), exact),
    ]
    result = Result(datetime.now(UTC), 2, Tally(2, exact), consumers=compared)
    with world.connection.transaction():
        emit(world.connection, result)
    assert result.resets == ["long", "short", "stray"]
    asked = world.connection.execute("SELECT consumer_name FROM resets ORDER BY 1").fetchall()
    assert asked == [("long",), ("short",), ("stray",)]


def test_a_past_run_tells_whether_all_totals_agreed(world: World) -> None:
    """A stray checkpoint is wrong, although the total may have been right."""
    exact = Decimal(7)
    right, off = Compared("right", 2, exact, exact), Compared("off", 2, exact + 1, exact)
    stray = Compared("stray", 99, exact, exact, stray=True)
    for consumers in [], [right], [right, off], [right, stray]:
        with world.connection.transaction():
            emit(world.connection, Result(datetime.now(UTC), 2, consumers=[*consumers]))
    found = past_runs(world.connection)
    assert [(run.totals, run.rollup) for run in found] == [
        (False, None),
        (False, None),
        (True, None),
        (None, None),
    ]
