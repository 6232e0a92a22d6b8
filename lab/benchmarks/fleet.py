"""A whole fleet with default settings: API, streamer, two totals, the rollup and two receipts'
workers, whose receiver is one that answers at once.
"""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

import psutil
import psycopg

from lab.benchmarks import load
from lab.benchmarks.receiver import Receiver, receiver
from lab.benchmarks.stand import Stand, wait_until
from rocket_rides import database, sessions
from rocket_rides.settings import DEMO_SECRET

CONSUMERS = ("consumer0", "consumer1")
WORKERS = ("receipts0", "receipts1")
# The ride up to which every total is exact; no row until all consumers have a checkpoint.
COUNTED = f"""
    SELECT min(last_ride_id) FROM checkpoints WHERE kind = 'total'
    HAVING count(*) = {len(CONSUMERS)}
"""
# Which of these sessions have completed a round.
AT_WORK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = ANY(%s)
"""


class RunningFleet(NamedTuple):
    """The running services, by name, the API's port, and who receives the receipts."""

    port: int
    services: dict[str, psutil.Process]
    customer: Receiver


@contextlib.contextmanager
def fleet(stand: Stand) -> Iterator[RunningFleet]:
    """Run a fleet; it is ready once a ride is in every total, and everyone is at work."""
    with (
        receiver() as customer,
        totals(stand) as (port, services),
        rollup(stand) as marker,
        workers(stand, customer) as members,
    ):
        yield RunningFleet(port, services | marker | members, customer)


@contextlib.contextmanager
def totals(stand: Stand) -> Iterator[tuple[int, dict[str, psutil.Process]]]:
    """Run the part of the fleet that takes and counts rides; yields the API's port as well."""
    with contextlib.ExitStack() as exits:
        port, api = exits.enter_context(stand.api())
        services = {"api": api, "streamer": exits.enter_context(stand.service("streamer"))}
        for name in CONSUMERS:
            services[name] = exits.enter_context(stand.service("consumers", name))
        with (
            database.connect(stand.postgres.url, "benchmark") as connection,
            contextlib.closing(load.KeepAlive(port)) as client,
        ):
            ride = ride_id(client.ask(next(load.RIDES)))
            wait_until(lambda: counted(connection) >= ride, "a ride is in every total")
        yield port, services


@contextlib.contextmanager
def rollup(stand: Stand) -> Iterator[dict[str, psutil.Process]]:
    """Run the rollup."""
    with stand.service("consumers.rollup") as process:
        _wait_for_sessions(stand, sessions.ROLLUP)
        yield {"rollup": process}


@contextlib.contextmanager
def workers(stand: Stand, customer: Receiver) -> Iterator[dict[str, psutil.Process]]:
    """Run the workers that deliver receipts to `customer`."""
    settings = {"RECEIPT_URL": customer.url, "RECEIPT_SECRET": DEMO_SECRET}
    with contextlib.ExitStack() as exits:
        services = {
            name: exits.enter_context(stand.service("consumers.receipts", name, **settings))
            for name in WORKERS
        }
        _wait_for_sessions(stand, *map(sessions.receipts, WORKERS))
        yield services


def _wait_for_sessions(stand: Stand, *names: str) -> None:
    with database.connect(stand.postgres.url, "benchmark") as connection:

        def working() -> int:
            number: int = database.one_row(connection.execute(AT_WORK, [list(names)]))[0]
            return number

        wait_until(lambda: working() == len(names), f"at work: {', '.join(names)}")


def counted(connection: psycopg.Connection) -> int:
    """The ride up to which every consumer has counted."""
    row = connection.execute(COUNTED).fetchone()
    return row[0] if row else 0


def ride_id(answer: bytes) -> int:
    """The id of the ride that the API answered with."""
    _, _, rest = answer.partition(b"/rides/")
    return int(rest.partition(b"\r")[0])
