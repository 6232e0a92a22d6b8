"""The rollup: how soon a ride is in its minute, what folding saves, and rolling up from nothing."""

import contextlib
import time
from statistics import quantiles

import psutil
import psycopg

from lab.benchmarks import fleet, load, outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.latency import BUSY_RATE, Journey
from lab.benchmarks.stand import Stand, seconds_used, wait_until
from rocket_rides import database, sessions

ROUNDS = 3
RIDES = 500
STEADY_SECONDS = 15
STEADY_RATE = 1000  # rides per second
TOGETHER = 10  # rides in a transaction
OLD_RIDES = 10_000_000
OLD_DAYS = 30
POST_ROUNDS = 5
POST_SECONDS = 2
POST_CLIENTS = 8
PATIENCE = 600.0  # seconds

COMPLETE_TO = "SELECT complete_to FROM rollup_state"
COMPUTED = "SELECT n_tup_ins + n_tup_upd FROM pg_stat_user_tables WHERE relname = 'ride_minutes'"
SESSION = "SELECT pid FROM pg_stat_activity WHERE application_name = %s"
NEWEST = "SELECT coalesce(max(id), 0) FROM rides"
TAKE_OLD = """
    INSERT INTO rides (created_at, distance)
    SELECT now() - make_interval(secs => %(days)s * 86400.0 * (%(rides)s - i) / %(rides)s), 539.837
    FROM generate_series(1, %(rides)s) i
"""
# As the streamer and autovacuum would have done in the meantime.
SENT = "UPDATE streamer_state SET last_sent_id = (SELECT max(id) FROM rides)"
SUMMARIZE = "SELECT brin_summarize_new_values('rides_created_at')"
DROP_INDEX = "DROP INDEX rides_created_at"
MAKE_INDEX = (
    "CREATE INDEX rides_created_at ON rides USING brin (created_at)"
    " WITH (pages_per_range = 32, autosummarize = on)"
)


def measure(stand: Stand) -> list[Figure]:
    """From a few rides to ten million."""
    with database.connect(stand.postgres.url, "benchmark") as connection:
        stand.say("how soon a ride is in its minute")
        figures = _latency(stand, connection)
        stand.say(f"{STEADY_RATE:,} rides a second")
        figures += _steady(stand, connection)
        stand.say("POST /rides with and without its index")
        figures.append(_posts(stand, connection))
        stand.say(f"{OLD_RIDES:,} rides")
        return [*figures, _from_nothing(stand, connection)]


def _latency(stand: Stand, connection: psycopg.Connection) -> list[Figure]:
    name = f"Ride to its minute, {BUSY_RATE:.0f} rides/s"
    figures = {
        50: Figure(f"{name}, p50", "ms"),
        99: Figure(f"{name}, p99", "ms", goal=Goal("value", "<=", 1000)),
    }
    with (
        fleet.fleet(stand) as running,
        contextlib.closing(load.KeepAlive(running.port)) as client,
    ):
        for _ in range(ROUNDS):
            journey = Journey([client], connection, BUSY_RATE, counted=complete_to)
            took = quantiles(journey.rides(RIDES), n=100)
            for percent, figure in figures.items():
                figure.runs.append(took[percent - 1])
    return list(figures.values())


def _steady(stand: Stand, connection: psycopg.Connection) -> list[Figure]:
    """The whole rollup, its session in Postgres included: so the indexer costs less than that."""
    name = f"Rollup at {STEADY_RATE:,} rides/s"
    cost = Figure(f"{name}, with its session", "% of a core", goal=Goal("value", "<=", 10))
    folded = Figure(f"{name}: rides for each time that a minute was computed", "rides")
    with stand.service("streamer"), stand.service("consumers.rollup") as process:
        _take_steadily(connection, 2)
        wait_until(lambda: _caught_up(connection), "every minute is right")
        [(backend,)] = connection.execute(SESSION, [sessions.ROLLUP])
        both = (process, psutil.Process(backend))
        for _ in range(ROUNDS):
            used, computed, rides = (
                sum(map(seconds_used, both)),
                _number(connection, COMPUTED),
                _newest(connection),
            )
            passed = _take_steadily(connection, STEADY_SECONDS / ROUNDS)
            cost.runs.append(100 * (sum(map(seconds_used, both)) - used) / passed)
            wait_until(lambda: _caught_up(connection), "every minute is right")
            time.sleep(1.1)  # Postgres' statistics are a second old
            again = max(1, _number(connection, COMPUTED) - computed)
            folded.runs.append((_newest(connection) - rides) / again)
    return [cost, folded]


def _take_steadily(connection: psycopg.Connection, seconds: float) -> float:
    """Take rides on a schedule; returns how many seconds that took."""
    started = time.perf_counter()
    for number in range(round(seconds * STEADY_RATE / TOGETHER)):
        time.sleep(max(0, started + number * TOGETHER / STEADY_RATE - time.perf_counter()))
        outbox.stage(connection, TOGETHER)
    return time.perf_counter() - started


def _posts(stand: Stand, connection: psycopg.Connection) -> Figure:
    figure = Figure(
        f"POST /rides, {POST_CLIENTS} clients, with the index on created_at",
        "requests/s",
        "without it",
        Goal("ratio", ">=", 0.97),
    )
    with stand.api() as (port, _):
        for _ in range(POST_ROUNDS):
            rate = load.rate(port, load.RIDES, POST_CLIENTS, POST_SECONDS)
            figure.runs.append(rate)
            connection.execute(DROP_INDEX)
            figure.limits.append(load.rate(port, load.RIDES, POST_CLIENTS, POST_SECONDS))
            connection.execute(MAKE_INDEX)
    return figure


def _from_nothing(stand: Stand, connection: psycopg.Connection) -> Figure:
    figure = Figure(
        f"Rolling up {OLD_RIDES:,} rides of {OLD_DAYS} days from nothing",
        "s",
        goal=Goal("value", "<=", 180),
    )
    connection.execute(TAKE_OLD, {"rides": OLD_RIDES, "days": OLD_DAYS})
    connection.execute(SENT)
    connection.execute(SUMMARIZE)
    started = time.perf_counter()
    with stand.service("consumers.rollup"):
        while not _caught_up(connection):
            if time.perf_counter() - started > PATIENCE:
                raise TimeoutError(f"not rolled up within {PATIENCE:.0f} s")
            time.sleep(0.1)
    figure.runs.append(time.perf_counter() - started)
    return figure


def complete_to(connection: psycopg.Connection) -> int:
    """The ride up to which every minute is right."""
    return _number(connection, COMPLETE_TO)


def _caught_up(connection: psycopg.Connection) -> bool:
    return complete_to(connection) >= _newest(connection)


def _newest(connection: psycopg.Connection) -> int:
    return _number(connection, NEWEST)


def _number(connection: psycopg.Connection, query: str) -> int:
    [number] = database.one_row(connection.execute(query))
    return int(number)
