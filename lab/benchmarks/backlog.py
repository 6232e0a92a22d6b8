"""How long readers take to catch up with ten minutes of rides, and how that slows new rides down.

The rides go straight into the outbox, while every reader is stopped; the streamer sends them, and
trims the log to its cap. Then the readers start. The limit is the rate of POSTs before and after.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import fmean

import psycopg

from lab.benchmarks import fleet, load, outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand, value
from lab.until import until
from unified_log import terms

MINUTES = 10
A_TENTH = Goal("value", "<=", MINUTES * 60 / 10)
NOT_SLOWER = Goal("ratio", ">=", 0.95)
ROUNDS = 2
CLIENTS = 8
SECONDS = 5
LOOK_EVERY = 0.2  # seconds
PATIENCE = 300.0  # seconds

COMPLETE_TO = "SELECT complete_to FROM rollup_state"
STAGED = "SELECT EXISTS (SELECT FROM staged_log_records)"
# What the servers would have done during those minutes.
SETTLE = ("VACUUM staged_log_records, rides", "CHECKPOINT")

Standing = Callable[[psycopg.Connection], int]


def measure(stand: Stand) -> list[Figure]:
    name = "Ten minutes' rides, caught up under load"
    totals = Figure(f"{name}: two totals", "s", goal=A_TENTH)
    rollup = Figure(f"{name}: the rollup", "s", goal=A_TENTH)
    posts = Figure("POST /rides meanwhile", "requests/s", "before and after", NOT_SLOWER)
    positions = (fleet.counted, complete_to)
    readers = partial(stand.services, *fleet.TOTALS, fleet.ROLLUP)
    with (
        stand.api() as (port, _),
        stand.services(fleet.STREAMER),
        stand.connect() as connection,
    ):
        post = partial(load.rate, port, load.RIDES, CLIENTS)
        with readers():
            before = post(SECONDS)
        for _ in range(ROUNDS):
            _fall_behind(stand, connection, rides_a_minute=round(60 * before))
            with readers(), ThreadPoolExecutor(2) as watchers:
                waits = [watchers.submit(_seconds_until_up_to_date, stand, at) for at in positions]
                meanwhile = []
                while not all(each.done() for each in waits):
                    meanwhile.append(post(1))
                totals.runs.append(waits[0].result())
                rollup.runs.append(waits[1].result())
                after = post(SECONDS)
            posts.runs.append(fmean(meanwhile))
            posts.limits.append(fmean([before, after]))
            before = after
    return [totals, rollup, posts]


def complete_to(connection: psycopg.Connection) -> int:
    return value(connection, COMPLETE_TO)


def _fall_behind(stand: Stand, connection: psycopg.Connection, rides_a_minute: int) -> None:
    for ago in range(MINUTES, 0, -1):
        outbox.stage(connection, rides_a_minute, minutes_ago=ago)
        until(lambda: not value(connection, STAGED), "not everything is sent")
    for statement in SETTLE:
        connection.execute(statement)
    with stand.log() as log:
        until(lambda: b"aof_rewrite_in_progress:0" in log.command("INFO"), "Redis does not settle")


def _seconds_until_up_to_date(stand: Stand, standing: Standing) -> float:
    """Seconds until a reader is past everything that had been sent one look earlier."""
    with stand.connect() as connection:
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
