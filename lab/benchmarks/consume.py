"""Counting a log, compared with only reading it, without decoding a single entry.

As in a consumer's process, imported objects are frozen for the garbage collector, in both runs.
"""

import gc
from itertools import count

from consumers.totals.total import Total
from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure, Goal
from lab.benchmarks.stand import Stand, seconds
from unified_log.log import START, Log
from unified_log.readers.reader import Reader
from unified_log.streamer.drain import Streamer

ENTRIES = 200_000
ROUNDS = 5


def measure(stand: Stand) -> list[Figure]:
    """Each round has a new consumer, which reads the log from its start."""
    limit = f"raw XREAD COUNT {outbox.BATCH}"
    name, goal = f"Consumer over {ENTRIES:,} entries", Goal("ratio", ">=", 0.3)
    figure = Figure(name, "records/s", limit, goal)
    names = (f"consumer{number}" for number in count())
    with stand.connect() as connection, stand.log() as log:
        streamer = Streamer(connection, log)
        outbox.stage(connection, ENTRIES)
        outbox.drain(streamer, ENTRIES)
        gc.freeze()
        try:
            figure.measure(
                ROUNDS,
                lambda: _consume(Reader(log, Total(connection, next(names)), outbox.BATCH)),
                lambda: ENTRIES / seconds(lambda: _read(log)),
            )
        finally:
            gc.unfreeze()
    return [figure]


def _consume(consumer: Reader[Total]) -> float:
    def to_the_end() -> None:
        counted = 0
        while counted < ENTRIES:
            records = consumer.run_once().records
            if not records:
                raise RuntimeError(f"the consumer is stuck after {counted} entries")
            counted += len(records)

    return ENTRIES / seconds(to_the_end)


def _read(log: Log) -> None:
    read, after = 0, START.encode()
    while read < ENTRIES:
        words = ("XREAD", "COUNT", outbox.BATCH, "STREAMS", log.name, after)
        reply = log.redis.execute_command(*words)  # type: ignore[no-untyped-call]
        entries = reply[0][1]
        read += len(entries)
        after = entries[-1][0]
