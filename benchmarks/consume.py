"""Counting a log, compared with only reading it, without decoding a single entry."""

import time

from benchmarks import outbox
from benchmarks.figures import Figure, Goal
from benchmarks.stand import Stand
from consumers.reader import Reader
from consumers.totals.total import Total
from rocket_rides import database
from rocket_rides.log import START, Log
from streamer.drain import Streamer

ENTRIES = 200_000
ROUNDS = 5
GOAL = Goal("value", ">=", 100_000)


def measure(stand: Stand) -> list[Figure]:
    """Each round has a new consumer, which reads the log from its start."""
    figure = Figure("Consumer over 200,000 entries", "records/s", "raw XREAD COUNT 1000", GOAL)
    with (
        database.connect(stand.postgres.url, "benchmark") as connection,
        Log(stand.redis.url, "rocket-rides-log") as log,
    ):
        outbox.stage(connection, ENTRIES)
        outbox.drain(Streamer(connection, log), ENTRIES)
        for round_ in range(ROUNDS):
            consumer = Reader(connection, log, f"consumer{round_}", Total)
            figure.runs.append(_consume(consumer))
            figure.limits.append(_read(log))
    return [figure]


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
        words = ("XREAD", "COUNT", 1000, "STREAMS", log.name, after)
        reply = log.redis.execute_command(*words)  # type: ignore[no-untyped-call]
        entries = reply[0][1]
        read += len(entries)
        after = entries[-1][0]
    return ENTRIES / (time.perf_counter() - started)
