"""A database and a log of its own for each test, and the services that work on them."""

import itertools
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

from consumers.totals.total import Total
from demo.embedded.servers import Postgres, Redis
from lab.until import until
from rocket_rides.settings import Settings
from tests.support.forks import Process
from unified_log import database, session_settings
from unified_log.log import Invalid, Log, Record, decode
from unified_log.readers.reader import Reader
from unified_log.streamer.drain import Streamer

# Seconds; only a broken test waits that long, even on a busy machine. Mutants break tests by the
# hundred, so they are told to wait for less.
PATIENCE = float(os.environ.get("TESTS_PATIENCE", "90"))

T = TypeVar("T")

# The commands of the log take the services' settings, as in a fleet.
THE_FLEETS = {"UNIFIED_LOG_SETTINGS": "rocket_rides.settings:load"}

TAKE_RIDES = """
    WITH ride AS (
        INSERT INTO rides (distance, created_at)
        SELECT distance, coalesce(moment, now())
        FROM unnest(%s::numeric[], %s::timestamptz[]) given(distance, moment)
        RETURNING id, distance
    ), staged AS (
        INSERT INTO staged_log_records (id, type, data)
        SELECT id, 'ride.create', jsonb_build_object('id', id, 'distance', distance) FROM ride
    )
    SELECT id FROM ride ORDER BY id
"""
RIDES = """
    SELECT consumer_states.rides, (SELECT count(*) FROM rides WHERE id <= position)
    FROM consumer_states JOIN checkpoints USING (kind, name) WHERE name = %s
"""


def eventually(
    claim: Callable[[], T | None],
    what: str = "the condition",
    patience: float = PATIENCE,
    pause: float = 0.02,
) -> T:
    """Poll until `claim()` is true, and return its value. Raises TimeoutError."""
    return until(claim, f"{what} did not come about", patience, pause, rarely=5)


class Consumer(Reader[Total]):
    """A consumer of the kind `python -m consumers.totals`."""

    @property
    def total(self) -> Decimal:
        return self.handler.distance

    @property
    def standing(self) -> tuple[int, Decimal]:
        """The position at which it stands, and its total in metres."""
        return self.at.position, self.total


@dataclass
class World:
    """One test's database and stream, on this test run's private servers."""

    postgres: Postgres
    redis: Redis
    postgres_url: str
    stream: str
    folder: Path
    own_connection: psycopg.Connection | None = None
    exits: ExitStack = field(default_factory=ExitStack)  # what ends with it
    outputs: Iterator[int] = field(default_factory=itertools.count)

    def connect(self, **session: str) -> psycopg.Connection:
        connection = database.connect(self.postgres_url, "test", **session)
        return self.exits.enter_context(closing(connection))

    def log(self) -> Log:
        """The log, whose answers may take as long as they do on a busy machine."""
        return self.exits.enter_context(Log(self.redis.url, self.stream, PATIENCE))

    def destroy_group(self, name: str) -> None:
        """Remove a consumer group of the stream, and all that is pending in it."""
        self.log().redis.xgroup_destroy(self.stream, name)

    def streamer(self, batch_size: int = 1000) -> Streamer:
        return Streamer(self.connect(**session_settings.INDEX_SCANS), self.log(), batch_size)

    def consumer(self, name: str = "consumer0", batch_size: int = 1000) -> Consumer:
        return Consumer(self.log(), Total(self.connect(), name), batch_size)

    def service(self, module: str, *arguments: str, **environment: str) -> "Service":
        """Start `python -m module` on this world's servers."""
        output = self.new_output(module)
        given = os.environ | THE_FLEETS | self.settings | environment
        return self.started(Service(Process(module, arguments, given, output), output))

    def new_output(self, name: str) -> Path:
        """The file for the output of a process."""
        return self.folder / f"{name}-{next(self.outputs)}.log"

    def started(self, service: "Service") -> "Service":
        """One that ends with this world."""
        self.exits.callback(service.kill)
        return service

    @property
    def settings(self) -> dict[str, str]:
        """What leads a process to this world's servers."""
        return {
            "DATABASE_URL": self.postgres_url,
            "REDIS_URL": self.redis.url,
            "STREAM_NAME": self.stream,
            "DATA_DIR": str(self.folder),
        }

    def config(self, **changed: Any) -> Settings:
        """The settings of a process on this world's servers, in this process."""
        servers = {
            "database_url": self.postgres_url,
            "redis_url": self.redis.url,
            "stream_name": self.stream,
        }
        return Settings(**{**servers, **changed})

    def take(self, *distances: str | float) -> list[int]:
        """Take rides as the API would; returns their ids."""
        ids = take(self.connection, *distances)
        self.connection.execute("NOTIFY doorbell")
        return ids

    def send(self, *distances: str | float) -> list[int]:
        """Take rides, and send all that is staged."""
        ids = self.take(*distances)
        drain(self.streamer())
        return ids

    @property
    def connection(self) -> psycopg.Connection:
        """The test's own connection; a new one when the server has been restarted."""
        if self.own_connection is None or not database.is_alive(self.own_connection):
            self.own_connection = self.connect()
        return self.own_connection

    def value(self, query: str, *values: object) -> int:
        return int(database.one_row(self.connection.execute(query, values))[0])

    @property
    def waiting(self) -> int:
        """How many sessions with this database wait for a lock."""
        return self.value(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )

    @property
    def start(self) -> int:
        """The position before its cell's first."""
        return self.value("SELECT cell_start()")

    @property
    def truth(self) -> tuple[int, Decimal | int]:
        """The last record's position and the exact sum of all rides: every total must reach it."""
        return database.one_row(
            self.connection.execute(
                "SELECT coalesce((SELECT max(id) FROM log_records), cell_start()),"
                " coalesce(sum(distance), 0)"
                " FROM rides"
            )
        )

    def standing(self, name: str = "consumer0") -> tuple[int, Decimal]:
        """The last ride and the total of a consumer, as committed."""
        row = self.connection.execute(
            "SELECT position, total_distance FROM checkpoints"
            " JOIN consumer_states USING (kind, name) WHERE name = %s",
            [name],
        ).fetchone()
        return row or (-1, Decimal(-1))

    def records(self) -> list[Record]:
        """The well-formed records in the log, in its order."""
        found = []
        for entry in self.log().read("0-0", 1_000_000):
            with suppress(Invalid):
                found.append(decode(entry.fields))
        return found

    def staged(self) -> int:
        return self.value("SELECT count(*) FROM staged_log_records")


def take(
    connection: psycopg.Connection, *distances: str | float, moments: Sequence[str] = ()
) -> list[int]:
    """Take rides in the connection's transaction, or in one of their own.

    They are requested at these moments, or now.
    """
    values = [Decimal(str(distance)) for distance in distances], list(moments)
    return [id_ for (id_,) in connection.execute(TAKE_RIDES, values)]


def drain(streamer: Streamer) -> int:
    """Send all settled records; returns how many."""
    return sum(iter(streamer.run_once, 0))


def catch_up(consumer: Consumer) -> tuple[int, Decimal]:
    """Run the consumer until a round finds nothing to do; returns its standing."""
    while not consumer.run_once().did_nothing:
        pass
    return consumer.standing


def exact(world: World, consumer: Consumer | None = None) -> bool:
    """Whether the consumer, or consumer0, is exact once it has caught up."""
    consumer = consumer or world.consumer()
    return catch_up(consumer) == world.truth and counts_its_rides(world, consumer)


def counts_its_rides(world: World, consumer: Consumer) -> bool:
    """Whether the number of its rides, as committed, is right where it stands."""
    row = world.connection.execute(RIDES, [consumer.handler.name]).fetchone()
    return row == (consumer.handler.rides, consumer.handler.rides)


@dataclass
class Service:
    """A program in a process of its own, in a session of its own; its output goes to a file."""

    process: Process | subprocess.Popen[bytes]
    output: Path

    def said(self, text: str) -> bool:
        """Whether the process has printed `text`; fails when it has ended without it."""
        if text in self.output.read_text():
            return True
        assert self.process.poll() is None, self.output.read_text()
        return False

    def says(self, text: str) -> Self:
        """Wait until the process has printed `text`."""
        eventually(lambda: self.said(text), f"{text!r} in {self.output.name}")
        return self

    def ends(self, patience: float = PATIENCE) -> int:
        """Wait for its end; returns the exit status."""
        return self.process.wait(patience)

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def interrupt(self) -> None:
        os.kill(self.process.pid, signal.SIGINT)

    def stop(self) -> int:
        """SIGTERM, and wait for the end; returns the exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """SIGKILL the whole session, and wait."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(PATIENCE)


@contextmanager
def transaction(world: World) -> Iterator[psycopg.Connection]:
    """A connection with an open transaction, rolled back unless the test commits it."""
    connection = psycopg.connect(world.postgres_url)
    try:
        yield connection
    finally:
        if not connection.closed:
            connection.rollback()  # and wait for it: after a mere close the server may take a while
        connection.close()


def chained(world: World) -> bool:
    """Whether the `prev` of each record is the greatest id below its own."""
    ids = sorted({record.id for record in world.records()})
    before = dict(zip(ids, [world.start, *ids], strict=False))
    return all(record.prev == before[record.id] for record in world.records())
