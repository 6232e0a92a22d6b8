"""When a night was missed, as the database tells."""

from datetime import UTC, datetime, timedelta

from analytics.nightly import nights
from tests.support.world import World

RECONCILED = """
    INSERT INTO reconciliations
        (last_ride_id, total_distance, rides, duration_seconds, compared, created_at)
    VALUES (1, 5, 1, 1, '[]', %s)
"""


def test_a_night_was_missed_when_older_rides_were_not_reconciled_since(world: World) -> None:
    due = datetime(2026, 1, 2, 3, tzinfo=UTC)
    moment = timedelta(microseconds=1)
    assert not nights.missed(world.connection, due)  # there is nothing to reconcile
    world.take(5)
    assert not nights.missed(world.connection, due)  # nor was there at the time
    world.connection.execute("UPDATE rides SET created_at = %s", [due - moment])
    assert nights.missed(world.connection, due)
    world.connection.execute(RECONCILED, [due - moment])  # that was the night before
    assert nights.missed(world.connection, due)
    world.connection.execute(RECONCILED, [due])
    assert not nights.missed(world.connection, due)


def test_a_mend_is_no_nights_run(world: World) -> None:
    due = datetime(2026, 1, 2, 3, tzinfo=UTC)
    world.take(5)
    world.connection.execute("UPDATE rides SET created_at = %s", [due - timedelta(1)])
    world.connection.execute(RECONCILED.replace("'[]'", "'{\"mended\": [1]}'"), [due])
    assert nights.missed(world.connection, due)
