"""Ten minutes of rides at the full rate, with every reader stopped: how long until all are up to
date again, and what that does to the rides that are taken meanwhile.

The rides of those ten minutes go straight into the outbox; the streamer sends them, and lets go of
what exceeds the log's cap, as it would have done. Then the readers start, and rides are posted all
the time. The limit is the rate beside readers that are up to date, right before and right after.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

import psycopg

from lab.benchmarks import fleet, load, outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.receiver import receiver
from lab.benchmarks.stand import Stand, wait_until
from rocket_rides import database, terms
from rocket_rides.log import Log

MINUTES = 10
A_TENTH = Goal("value", "<=", MINUTES * 60 / 10)
NOT_SLOWER = Goal("ratio", ">=", 0.95)
ROUNDS = 2
CLIENTS = 8
SECONDS, LONG = 5, 10
LOOK_EVERY = 0.2  # seconds
PATIENCE = 300.0  # seconds

COMPLETE_TO = "SELECT complete_to FROM rollup_state"
RECEIPTS = "SELECT count(*) FROM receipts"
# What the servers would have done in the course of those minutes.
SETTLE = ("VACUUM staged_log_records, rides", "CHECKPOINT")
STAGED = "SELECT EXISTS (SELECT FROM staged_log_records)"

Standing = Callable[[psycopg.Connection], int]


def measure(stand: Stand) -> list[Figure]:
    """The readers with a checkpoint; then the receipts, of which each is a request of its own."""
    name = "Ten minutes of rides caught up while more are taken"
    totals = Figure(f"{name}: two totals", "s", goal=A_TENTH)
    rollup = Figure(f"{name}: the rollup", "s", goal=A_TENTH)
    limit = "before and after"
    posts = Figure(f"POST /rides, {CLIENTS} clients, meanwhile", "requests/s", limit, NOT_SLOWER)
    with (
        stand.api() as (port, _),
        stand.service("streamer"),
        database.connect(stand.postgres.url, "benchmark") as connection,
    ):
        with readers(stand):
            before = _post(port)
        for _ in range(ROUNDS):
            _fall_behind(stand, connection, rides_a_minute=round(60 * before))
            with readers(stand), ThreadPoolExecutor(2) as watchers:
                waits = [
                    watchers.submit(_seconds_until_up_to_date, stand, where)
                    for where in (fleet.counted, complete_to)
                ]
                meanwhile = []
                while not all(wait.done() for wait in waits):
                    meanwhile.append(_post(port, 1))
                totals.runs.append(waits[0].result())
                rollup.runs.append(waits[1].result())
                after = _post(port)
            posts.runs.append(fmean(meanwhile))
            posts.limits.append(fmean([before, after]))
            before = after
        receipts = _receipts(stand, connection, port, before)
    return [totals, rollup, posts, *receipts]


def _receipts(
    stand: Stand, connection: psycopg.Connection, port: int, before: float
) -> list[Figure]:
    """What two workers get done in a while, none of these rides having a receipt yet."""
    receipts = Figure("Receipts caught up by two workers while rides are taken", "receipts/s")
    limit = "no worker"
    posts = Figure(f"POST /rides, {CLIENTS} clients, meanwhile", "requests/s", limit)
    with readers(stand), receiver() as customer, fleet.workers(stand, customer):
        done, began = _count(connection), time.perf_counter()
        posts.runs.append(_post(port, LONG))
        receipts.runs.append((_count(connection) - done) / (time.perf_counter() - began))
    posts.limits.append(before)
    return [receipts, posts]


def _count(connection: psycopg.Connection) -> int:
    return int(database.one_row(connection.execute(RECEIPTS))[0])


@contextlib.contextmanager
def readers(stand: Stand) -> Iterator[None]:
    """Two totals and the rollup."""
    with contextlib.ExitStack() as exits:
        for name in fleet.CONSUMERS:
            exits.enter_context(stand.service("consumers", name))
        exits.enter_context(fleet.rollup(stand))
        yield


def complete_to(connection: psycopg.Connection) -> int:
    """The ride up to which the rollup is right."""
    return int(database.one_row(connection.execute(COMPLETE_TO))[0])


def _post(port: int, seconds: float = SECONDS) -> float:
    return load.rate(port, load.RIDES, CLIENTS, seconds)


def _fall_behind(stand: Stand, connection: psycopg.Connection, rides_a_minute: int) -> None:
    """So many rides are taken in each minute, and sent, while no reader runs."""
    for ago in range(MINUTES, 0, -1):
        outbox.stage(connection, rides_a_minute, minutes_ago=ago)
        wait_until(lambda: not database.one_row(connection.execute(STAGED))[0], "all is sent")
    for statement in SETTLE:
        connection.execute(statement)
    with Log(stand.redis.url, "benchmark") as log:
        wait_until(lambda: b"aof_rewrite_in_progress:0" in log.command("INFO"), "Redis has settled")


def _seconds_until_up_to_date(stand: Stand, standing: Standing) -> float:
    """How long it takes until a reader is past everything that was sent at the look before."""
    with database.connect(stand.postgres.url, "benchmark") as connection:
        started = time.perf_counter()
        sent = terms.last_sent(connection)
        while True:
            time.sleep(LOOK_EVERY)
            at = standing(connection)
            seconds = time.perf_counter() - started
            if at >= sent:
                return seconds
            if seconds > PATIENCE:
                raise TimeoutError(f"at ride {at} of {sent} after {PATIENCE:.0f} s")
            sent = terms.last_sent(connection)
