"""A consumer that begins late: the log no longer has the first ten million rides.

It takes them from the view `log_records`: a handler by default a page at a time, each in a
transaction of its own; a total by one statement. Then all but the last 900 rides are closed, and a
total begins there. It does not rest between its rounds here.
"""

import time
from collections.abc import Sequence
from itertools import count
from typing import Any, ClassVar

import psycopg

from consumers.rides import TYPE, ride
from consumers.totals.total import Total
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.nights import ALL, MILLION
from lab.benchmarks.stand import Stand, seconds, value
from unified_log.readers.handler import Handler
from unified_log.readers.reader import Reader

ROUNDS = 3  # of the quick ones
CREATE = """
    CREATE TABLE seen (
        kind text, name text, records bigint NOT NULL, PRIMARY KEY (kind, name),
        FOREIGN KEY (kind, name) REFERENCES readers (kind, name) ON DELETE CASCADE
    )
"""
SEEN = "SELECT sum(records) FROM seen"
# What a page is read with, as one statement that keeps nothing.
ALL_RECORDS = "COPY (SELECT id, type, data FROM log_records ORDER BY id) TO STDOUT"
WRONG_TOTALS = """
    SELECT count(*) FROM consumer_states
    WHERE (rides, total_distance) <> (SELECT count(*), sum(distance) FROM rides)
"""
ALL_RIDES = "SELECT sum(distance) FROM rides"
OPEN = 900  # rides
# As `analytics.close` would; here nobody doubts them.
CLOSE = """
    WITH last AS (SELECT id FROM rides ORDER BY id DESC OFFSET %s LIMIT 1), run AS (
        INSERT INTO runs (status, position, ended_at) SELECT 'agreed', id, now() FROM last
        RETURNING id
    )
    INSERT INTO closings (position, rides, total_distance, digest, run_id, ledger, closed_by)
    SELECT last.id, count(*), sum(distance), repeat('0', 64), run.id, repeat('0', 64), 'lab'
    FROM last, run, rides WHERE rides.id <= last.id GROUP BY last.id, run.id
"""
RIDES_READ = """
    SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_xact_user_tables WHERE relname = 'rides'
"""


class Seen(Handler):
    """Counts rides: the least that a handler may do."""

    KIND = "seen"
    TYPES: ClassVar = {TYPE: ride}

    def begin(self) -> None:
        self.connection.execute("INSERT INTO seen VALUES (%s, %s, 0)", [self.KIND, self.name])

    def take(self, records: Sequence[Any]) -> None:
        counted = [len(records), self.KIND, self.name]
        update = "UPDATE seen SET records = records + %s WHERE kind = %s AND name = %s"
        self.connection.execute(update, counted)


def measure(stand: Stand) -> list[Figure]:
    whose = f"{ALL // MILLION} million rides"
    pages = Figure(f"{whose}, by pages of the view", "s", "one COPY")
    rounds = Figure("Its transactions", "")
    longest = Figure("The longest", "ms", goal=Goal("value", "<=", 1000))
    total = Figure(f"{whose}, a total's SQL", "s", "their sum")
    closed = Figure(f"The same, all but {OPEN} rides closed", "ms")
    read = Figure("The rides that it reads", "", goal=Goal("value", "<=", 1000))
    names = (f"late{number}" for number in count())
    with stand.connect() as connection, stand.log() as log:
        connection.execute(CREATE)
        outbox.insert_as_sent(connection, ALL)
        took = _rounds(Reader(log, Seen(connection, next(names))))
        if value(connection, SEEN) != ALL:
            raise RuntimeError(f"it has counted {value(connection, SEEN):,} rides")
        pages.runs.append(sum(took))
        pages.limits.append(seconds(lambda: _copy(connection)))
        rounds.runs.append(len(took))
        longest.runs.append(1000 * max(took))
        total.measure(
            ROUNDS,
            lambda: sum(_rounds(Reader(log, Total(connection, next(names))))),
            lambda: seconds(lambda: connection.execute(ALL_RIDES)),
        )
        connection.execute(CLOSE, [OPEN])
        for _ in range(ROUNDS):
            before, began = value(connection, RIDES_READ), time.perf_counter()
            reader = Reader(log, Total(connection, next(names)))
            with connection.transaction():  # so that the rows that it reads are counted
                _rounds(reader)
                closed.runs.append(1000 * (time.perf_counter() - began))
                read.runs.append(value(connection, RIDES_READ) - before)
        if value(connection, WRONG_TOTALS):
            raise RuntimeError("a total is wrong")
    return [pages, rounds, longest, total, closed, read]


def _rounds(reader: Reader[Any]) -> list[float]:
    """Let it catch up; returns the seconds of each round in which it counted."""
    took: list[float] = []
    while True:
        began = time.perf_counter()
        done = reader.run_once()
        if not done.healed:
            return took
        took.append(time.perf_counter() - began)


def _copy(connection: psycopg.Connection) -> None:
    with connection.cursor() as cursor, cursor.copy(ALL_RECORDS) as copy:
        for _ in copy:
            pass
