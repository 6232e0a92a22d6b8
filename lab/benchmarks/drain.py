"""Draining a backlog, compared with redis-cli --pipe adding the same entries to the same Redis.

It is repeated after ten million records have gone through the table: dead rows must not slow it
down. Each such run is followed by one on a new database: the machine itself is never the same.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from demo.embedded.programs import programs
from demo.embedded.stream_servers import REDIS
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand
from migrations import upgrade
from rocket_rides import database, session_settings
from rocket_rides.log import Log
from streamer.drain import Streamer

RECORDS = 200_000
ROUNDS = 3
BESIDE = 3
OLD = 10_000_000
GOAL = Goal("ratio", ">=", 0.7)
STILL = Goal("ratio", ">=", 0.95)  # the same, within noise
STREAM = "rocket-rides-log"


def measure(stand: Stand) -> list[Figure]:
    """On a young table, and on one that ten million records have gone through."""
    young = Figure("Drain of 200,000 records", "records/s", "redis-cli --pipe", GOAL, headline=True)
    old = Figure("Drain after ten million more", "records/s", young.limit_name, GOAL)
    aged = Figure("Drain, an old table beside a young one", "records/s", "the young one", STILL)
    with draining(stand, stand.postgres.url) as (connection, log, streamer):
        for _ in range(ROUNDS):
            young.runs.append(_drain(connection, log, streamer, RECORDS))
            young.limits.append(_pipe(stand, connection, log, streamer))
        _grow_old(connection, log, streamer)
        for round_ in range(ROUNDS):
            old.runs.append(_drain(connection, log, streamer, RECORDS))
            old.limits.append(_pipe(stand, connection, log, streamer))
            young_url = _new_database(connection, f"young{round_}", streamer.last_sent)
            with draining(stand, young_url) as beside:
                for _ in range(BESIDE):
                    aged.runs.append(_drain(connection, log, streamer, RECORDS))
                    aged.limits.append(_drain(*beside, RECORDS))
    return [young, old, aged]


@contextlib.contextmanager
def draining(stand: Stand, url: str) -> Iterator[tuple[psycopg.Connection, Log, Streamer]]:
    """A streamer of the database at `url`, and the connections for filling its outbox."""
    with (
        database.connect(url, "benchmark") as connection,
        database.connect(url, "streamer", **session_settings.INDEX_SCANS) as streaming,
        Log(stand.redis.url, STREAM) as log,
    ):
        yield connection, log, Streamer(streaming, log, outbox.BATCH)


def _grow_old(connection: psycopg.Connection, log: Log, streamer: Streamer) -> None:
    """Let many more records go through the outbox. Their rides would not touch it: there are none.

    So this takes a minute, and not three.
    """
    for _ in range(0, OLD, RECORDS):
        outbox.stage_alone(connection, RECORDS)
        outbox.drain(streamer, RECORDS)
        log.redis.delete(log.name)


def _new_database(connection: psycopg.Connection, name: str, last_drawn: int) -> str:
    """Create one, with the schema and no rides, on the same server; returns its URL.

    Its numbers go on from `last_drawn`: shorter ones would be less to send.
    """
    connection.execute(f"CREATE DATABASE {name}")
    url = make_conninfo("", **{**connection.info.get_parameters(), "dbname": name})
    upgrade(url)
    with database.connect(url, "benchmark") as new:
        new.execute("SELECT setval('log_position', %s)", [last_drawn])
    return url


def _drain(connection: psycopg.Connection, log: Log, streamer: Streamer, records: int) -> float:
    """Stage records, then time only the drain."""
    log.redis.delete(log.name)
    outbox.stage(connection, records)
    return records / outbox.drain(streamer, records)


def _pipe(stand: Stand, connection: psycopg.Connection, log: Log, streamer: Streamer) -> float:
    """The limit: one XADD for each of the same records, through redis-cli."""
    log.redis.delete(log.name)
    outbox.stage(connection, RECORDS)
    file = stand.folder / "commands"
    file.write_bytes(outbox.as_commands(connection, log.name, streamer.term.name))
    seconds = _run_redis_cli(stand, file)
    log.redis.delete(log.name)
    outbox.drain(streamer, RECORDS)
    return RECORDS / seconds


def _run_redis_cli(stand: Stand, commands: Path) -> float:
    # Redis' own, because Valkey's wheel has none; it works with both servers.
    program = programs(REDIS.distribution, stand.folder, stand.redis.account) / "redis-cli"
    with commands.open("rb") as file:
        started = time.perf_counter()
        run = subprocess.run(
            [program, "-s", stand.redis.sockets / "redis.sock", "--pipe"],
            stdin=file,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        seconds = time.perf_counter() - started
    if f"errors: 0, replies: {RECORDS}" not in run.stdout:
        raise RuntimeError(f"redis-cli failed: {run.stdout} {run.stderr}")
    return seconds
