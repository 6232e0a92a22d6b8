"""Rides through the containers: posted, counted, their receipts delivered, and reconciled."""

import json
from collections.abc import Callable
from decimal import Decimal

import httpx

from lab.containers.compose import Failed
from lab.containers.container import Running, wait_for
from rocket_rides.database import connect

# As the top of the file tells a person to post them, and the reconciler's comment to reconcile.
RIDES = 200
POST = ["python", "-m", "demo.simulator", "--rides", str(RIDES), "--rate", "0"]
RECONCILE = ["python", "-m", "analytics.reconcile"]
API = "http://127.0.0.1:8000"

NEWEST = "SELECT max(id) FROM rides"
EXACT = "SELECT sum(distance) FROM rides WHERE id <= %s"
UNDECIDED = """
    SELECT count(*) FROM rides LEFT JOIN receipts ON ride_id = id
    WHERE id <= %s AND outcome IS NULL
"""
# The demo's customer never accepts some.
DELIVERED = "SELECT count(*) FROM receipts WHERE ride_id <= %s AND outcome = 'delivered'"


def flow(password: str, post: Callable[[], Running], say: Callable[[str], None]) -> None:
    """Post rides, and wait until all have coped with them. Raises Failed."""
    url = f"postgresql://rocket_rides:{password}@127.0.0.1/rocket_rides"
    with connect(url, "containers") as connection:

        def value(query: str, *values: int) -> int | Decimal:
            [found] = connection.execute(query, values).fetchone() or [0]
            return found

        def both_are_exact() -> bool:
            try:
                answer = httpx.get(f"{API}/consumers").raise_for_status()
            except httpx.HTTPError:
                return False
            told = json.loads(answer.text, parse_float=Decimal)["consumers"]
            totals = [each for each in told if each["kind"] == "total"]
            return len(totals) == 2 and all(
                each["last_ride_id"] >= newest
                and each["total_distance"] == value(EXACT, each["last_ride_id"])
                for each in totals
            )

        post().meet("service_completed_successfully")
        newest = int(value(NEWEST))
        wait_for(both_are_exact, f"not both totals are exact up to ride {newest}")
        say(f"both totals are the exact sum, up to ride {newest} at least")
        undecided = f"not every receipt up to ride {newest} is delivered or a dead letter"
        wait_for(lambda: value(UNDECIDED, newest) == 0, undecided)
        delivered = value(DELIVERED, newest)
        say(f"of their receipts, {delivered} were delivered; dead letters: {newest - delivered}")


def reconcile(reconciler: Running, say: Callable[[str], None]) -> None:
    """Run the nightly job now, in its container. Raises Failed."""
    if not reconciler.run(RECONCILE):
        raise Failed(f"the nightly job failed: {reconciler.last_line()}")
    say("the nightly job agrees with both totals")
