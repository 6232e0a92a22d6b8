"""Draining a backlog, compared with redis-cli --pipe adding the same entries to the same Redis.

Then again, after ten million records have gone through the table: dead rows must not slow it down.
Each such run is followed by one on a new database: the machine itself is never the same.
"""

import contextlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from demo.embedded.programs import programs
from demo.embedded.stream_servers import REDIS
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import STREAM, Stand
from migrations import upgrade
from rocket_rides import database, session_settings
from rocket_rides.log import Log
from streamer.drain import Streamer

RECORDS = 200_000
ROUNDS = 3
BESIDE = 3
OLD = 10_000_000
STAGED = "SELECT id, data::text FROM staged_log_records ORDER BY id"


def measure(stand: Stand) -> list[Figure]:
    """On a young table, and on one that ten million records have gone through."""
    young = Figure(
        "Drain of 200,000 records", "records/s", "redis-cli --pipe", Goal("ratio", ">=", 0.7)
    )
    aged = Figure(
        "Drain, an old table beside a young one",
        "records/s",
        "the young one",
        Goal("ratio", ">=", 0.95),  # the same, within noise
    )
    with outbox_at(stand, stand.postgres.url) as old:
        young.measure(ROUNDS, old.drain, lambda: _pipe(stand, old))
        old.grow_old()
        for round_ in range(ROUNDS):
            url = _new_database(old, f"young{round_}")
            with outbox_at(stand, url) as beside:
                aged.measure(BESIDE, old.drain, beside.drain)
    return [young, aged]


@dataclass
class Outbox:
    """A database's outbox, and the streamer that empties it into the log."""

    connection: psycopg.Connection
    log: Log
    streamer: Streamer

    def fill(self) -> None:
        """Stage records for an empty log."""
        self.log.redis.delete(STREAM)
        outbox.stage(self.connection, RECORDS)

    def drain(self) -> float:
        """Stage records, then time only the drain: records a second."""
        self.fill()
        return RECORDS / outbox.drain(self.streamer, RECORDS)

    def grow_old(self) -> None:
        """Let many more records go through. Their rides would not touch it: there are none.

        So this takes a minute, and not three.
        """
        for _ in range(0, OLD, RECORDS):
            outbox.stage_alone(self.connection, RECORDS)
            outbox.drain(self.streamer, RECORDS)
            self.log.redis.delete(STREAM)


@contextlib.contextmanager
def outbox_at(stand: Stand, url: str) -> Iterator[Outbox]:
    """That of the database at `url`."""
    with (
        database.connect(url, "benchmark") as connection,
        database.connect(url, "streamer", **session_settings.INDEX_SCANS) as streaming,
        stand.log() as log,
    ):
        yield Outbox(connection, log, Streamer(streaming, log, outbox.BATCH))


def _new_database(old: Outbox, name: str) -> str:
    """Create one, with the schema and no rides, on the same server; returns its URL.

    Its numbers go on from the old one's: shorter ones would be less to send.
    """
    old.connection.execute(f"CREATE DATABASE {name}")
    url = make_conninfo("", **{**old.connection.info.get_parameters(), "dbname": name})
    upgrade(url)
    with database.connect(url, "benchmark") as new:
        new.execute("SELECT setval('log_position', %s)", [old.streamer.last_sent])
    return url


def _pipe(stand: Stand, old: Outbox) -> float:
    """The limit: one XADD for each of the same records, through redis-cli."""
    old.fill()
    file = stand.folder / "commands"
    file.write_bytes(_as_commands(old))
    # Redis' own, because Valkey's wheel has none; it works with both servers.
    program = programs(REDIS.distribution, stand.folder, stand.redis.account) / "redis-cli"
    with file.open("rb") as commands:
        started = time.perf_counter()
        run = subprocess.run(
            [program, "-s", stand.redis.socket, "--pipe"],
            stdin=commands,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        seconds = time.perf_counter() - started
    if f"errors: 0, replies: {RECORDS}" not in run.stdout:
        raise RuntimeError(f"redis-cli failed: {run.stdout} {run.stderr}")
    old.log.redis.delete(STREAM)
    outbox.drain(old.streamer, RECORDS)
    return RECORDS / seconds


def _as_commands(old: Outbox) -> bytes:
    """The staged records as XADD commands in Redis' own protocol."""
    commands = []
    prev = 0
    for position, data in old.connection.execute(STAGED):
        values = ("data", data, "prev", str(prev), "term", old.streamer.term.name)
        words = ("XADD", STREAM, "*", *values)
        lines = [f"*{len(words)}", *(f"${len(word)}\r\n{word}" for word in words), ""]
        commands.append("\r\n".join(lines))
        prev = position
    return "".join(commands).encode()
