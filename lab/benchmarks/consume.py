"""Counting a log, compared with only reading it, without decoding a single entry; and ten at once.

As in a consumer's process, the garbage collector passes over what was imported: here for both.
"""

import contextlib
import gc
import time
from collections.abc import Iterator
from typing import NamedTuple

import psutil
import psycopg

from consumers.reader import Reader
from consumers.totals.total import Total
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand, wait_until
from rocket_rides import database
from rocket_rides.log import START, Log
from streamer.drain import Streamer

ENTRIES = 200_000
ROUNDS = 5
GOAL = Goal("ratio", ">=", 0.3)
TEN = 10
POLL = 0.01  # seconds

COUNTED = "SELECT count(*) FROM checkpoints WHERE name ^@ %s AND last_ride_id >= %s"
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name ^@ 'consumer ten'"


def measure(stand: Stand) -> list[Figure]:
    """Each round has a new consumer, which reads the log from its start."""
    limit = f"raw XREAD COUNT {outbox.BATCH}"
    figure = Figure("Consumer over 200,000 entries", "records/s", limit, GOAL)
    with (
        database.connect(stand.postgres.url, "benchmark") as connection,
        Log(stand.redis.url, "rocket-rides-log") as log,
    ):
        streamer = Streamer(connection, log)
        outbox.stage(connection, ENTRIES)
        outbox.drain(streamer, ENTRIES)
        with collector_as_in_a_process():
            for round_ in range(ROUNDS):
                consumer = Reader(connection, log, f"consumer{round_}", Total, outbox.BATCH)
                figure.runs.append(_consume(consumer))
                figure.limits.append(_read(log))
        return [figure, *_ten(stand, connection, log, streamer, figure.value)]


@contextlib.contextmanager
def collector_as_in_a_process() -> Iterator[None]:
    """Have it pass over what there is so far, as `rocket_rides.process` does."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


class Cost(NamedTuple):
    """Processor time, in seconds."""

    consumers: float
    sessions: float
    redis: float


def _ten(
    stand: Stand, connection: psycopg.Connection, log: Log, streamer: Streamer, alone: float
) -> list[Figure]:
    """Ten consumers, each a process: stopped while the log grows, and then set off together."""
    with contextlib.ExitStack() as exits:
        names = [f"ten{number}" for number in range(TEN)]
        processes = [exits.enter_context(stand.service("consumers", name)) for name in names]
        wait_until(lambda: _past(connection, streamer.last_sent) == TEN, "ten consumers at work")
        for process in processes:
            process.suspend()
        outbox.stage(connection, ENTRIES)
        outbox.drain(streamer, ENTRIES)
        before = _used(connection, log, processes)
        started = time.perf_counter()
        for process in processes:
            process.resume()
        while _past(connection, streamer.last_sent) < TEN:
            time.sleep(POLL)
        seconds = time.perf_counter() - started
        after = _used(connection, log, processes)
    records = TEN * ENTRIES
    together = Figure("Ten consumers at once, all together", "records/s", "one consumer")
    together.runs.append(records / seconds)
    together.limits.append(alone)
    whose = ("in each consumer", "in its session with Postgres", "in Redis")
    costs = [
        Figure(
            f"Ten consumers: processor time for a record, {place}",
            "µs",
            runs=[(late - early) / records * 1e6],
        )
        for place, late, early in zip(whose, after, before, strict=True)
    ]
    return [together, *costs]


def _past(connection: psycopg.Connection, ride: int) -> int:
    """How many of the ten have counted the rides up to there."""
    return int(database.one_row(connection.execute(COUNTED, ["ten", ride]))[0])


def _used(connection: psycopg.Connection, log: Log, processes: list[psutil.Process]) -> Cost:
    sessions = [psutil.Process(pid) for (pid,) in connection.execute(SESSIONS)]
    about = dict(line.split(":", 1) for line in log.command("INFO").decode().split() if ":" in line)
    redis = psutil.Process(int(about["process_id"]))
    return Cost(_seconds(processes), _seconds(sessions), _seconds([redis]))


def _seconds(processes: list[psutil.Process]) -> float:
    return sum(times.user + times.system for times in (p.cpu_times() for p in processes))


def _consume(consumer: Reader[Total]) -> float:
    started = time.perf_counter()
    counted = 0
    while counted < ENTRIES:
        news = consumer.run_once().news
        if not news:
            raise RuntimeError(f"the consumer is stuck after {counted} entries")
        counted += len(news)
    return ENTRIES / (time.perf_counter() - started)


def _read(log: Log) -> float:
    started = time.perf_counter()
    read, after = 0, START.encode()
    while read < ENTRIES:
        words = ("XREAD", "COUNT", outbox.BATCH, "STREAMS", log.name, after)
        reply = log.redis.execute_command(*words)  # type: ignore[no-untyped-call]
        entries = reply[0][1]
        read += len(entries)
        after = entries[-1][0]
    return ENTRIES / (time.perf_counter() - started)
