"""A whole fleet with default settings: API, streamer, two totals, the rollup, and two workers of
the receipts, whose receiver answers at once.
"""

import contextlib
from collections.abc import Iterator
from functools import partial

import psutil
import psycopg

from lab.benchmarks import load
from lab.benchmarks.receiver import receiver
from lab.benchmarks.stand import Stand, value
from lab.until import until
from rocket_rides import sessions
from rocket_rides.settings import DEMO_SECRET

STREAMER = ["streamer"]
TOTALS = (["consumers.totals", "consumer0"], ["consumers.totals", "consumer1"])
ROLLUP = ["consumers.rollup"]
WORKERS = (["consumers.receipts", "receipts0"], ["consumers.receipts", "receipts1"])
# The ride up to which every total is exact; none until all consumers have a checkpoint.
COUNTED = f"""
    SELECT min(position) FROM current_checkpoints WHERE kind = 'total'
    HAVING count(*) = {len(TOTALS)}
"""
# How many sessions of these names have completed a round.
AT_WORK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = ANY(%s)
"""

Processes = list[psutil.Process]


@contextlib.contextmanager
def fleet(stand: Stand) -> Iterator[tuple[int, Processes]]:
    """Run a fleet; yields the API's port and all processes, once a ride is in every total."""
    with (
        stand.api() as (port, api),
        stand.services(STREAMER, *TOTALS, ROLLUP) as services,
        receiver(stand) as url,
        workers(stand, url) as members,
    ):
        with stand.connect() as connection, contextlib.closing(load.KeepAlive(port)) as client:
            ride = client.post()
            until(lambda: counted(connection) >= ride, "no ride gets into every total")
        wait_for_sessions(stand, sessions.ROLLUP)
        yield port, [api, *services, *members]


@contextlib.contextmanager
def workers(stand: Stand, url: str) -> Iterator[Processes]:
    settings = {"RECEIPT_URL": url, "RECEIPT_SECRET": DEMO_SECRET}
    with stand.services(*WORKERS, **settings) as processes:
        wait_for_sessions(stand, *(sessions.receipts(name) for _, name in WORKERS))
        yield processes


def wait_for_sessions(stand: Stand, *names: str) -> None:
    with stand.connect() as connection:
        are_there = partial(value, connection, AT_WORK, [*names])
        until(lambda: are_there() == len(names), f"not at work: {', '.join(names)}")


def counted(connection: psycopg.Connection) -> int:
    return value(connection, COUNTED)
