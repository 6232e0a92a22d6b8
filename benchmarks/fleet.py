"""A whole fleet: API, streamer, two consumers and the rollup, with default settings."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import psutil
import psycopg

from benchmarks import load
from benchmarks.stand import Stand, wait_until
from rocket_rides import database

CONSUMERS = ("consumer0", "consumer1")
# The ride up to which every total is exact; no row until all consumers have a checkpoint.
COUNTED = f"""
    SELECT min(last_ride_id) FROM checkpoints
    WHERE kind = 'total' HAVING count(*) = {len(CONSUMERS)}
"""


class RunningFleet(NamedTuple):
    """The running services, by name, and the API's port."""

    port: int
    services: dict[str, psutil.Process]


@contextlib.contextmanager
def fleet(stand: Stand) -> Iterator[RunningFleet]:
    """Run a fleet; it is ready once a ride is in every total."""
    with contextlib.ExitStack() as exits:
        port, api = exits.enter_context(stand.api())
        services = {"api": api, "streamer": exits.enter_context(stand.service("streamer"))}
        for name in CONSUMERS:
            services[name] = exits.enter_context(stand.service("consumers", name))
        services["rollup"] = exits.enter_context(stand.service("consumers.rollup"))
        with (
            database.connect(stand.postgres.url, "benchmark") as connection,
            contextlib.closing(load.KeepAlive(port)) as client,
        ):
            ride = ride_id(client.ask(next(load.RIDES)))
            wait_until(lambda: counted(connection) >= ride, "a ride is in every total")
        yield RunningFleet(port, services)


def counted(connection: psycopg.Connection) -> int:
    """The ride up to which every consumer has counted."""
    row = connection.execute(COUNTED).fetchone()
    return row[0] if row else 0


def ride_id(answer: bytes) -> int:
    """The id of the ride that the API answered with."""
    _, _, rest = answer.partition(b"/rides/")
    return int(rest.partition(b"\r")[0])
