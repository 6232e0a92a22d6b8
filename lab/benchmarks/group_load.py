"""Ten members of one group and a producer for them, on one stream.

The producer appends each entry when it is due, however late those before it were, and the entry
carries that time. So a stall delays what was due meanwhile, in the figures as in life. All
processes share the machine's monotonic clock.
"""

import contextlib
import gc
import os
import signal
import time
from array import array
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from itertools import chain
from multiprocessing import get_context
from typing import Any

import redis

from consumers.receipts.group import Group
from lab.benchmarks.members import COUNT, GROUP, STREAM, Reader, Run, Spent, consume, since, spent
from lab.until import until
from rocket_rides.log import Log
from rocket_rides.parent_death import die_with_parent

MEMBERS = 10
RATE = 10_000  # entries per second
ENTRIES = 5 * RATE  # of a run
SECOND = 1_000_000_000  # nanoseconds
FILL = "for _ = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'due', '0') end"


@contextlib.contextmanager
def processes() -> Iterator[Executor]:
    """Processes for the members and their producer, for any number of runs."""
    spawn = get_context("spawn")
    with ProcessPoolExecutor(MEMBERS + 1, mp_context=spawn, initializer=_begin) as pool:
        yield pool


def _begin() -> None:
    """End with the parent, and silently at Ctrl-C; freeze what is imported, as services do."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()


def prepare(url: str, pending: int) -> None:
    """Make a new stream with a group, and so many entries pending of a member that is gone."""
    with Log(url, STREAM) as log:
        log.start_anew()
        gone = Group(log, GROUP, "gone")
        gone.make()
        for _ in range(pending // COUNT):
            log.run(FILL, COUNT)
            gone.read(COUNT)


def run(pool: Executor, url: str, server: int, reader: Reader) -> Run:
    """Let the members read what is produced; times are sorted, and `server` is its process.

    What it cost is the sum of the server, the producer and the members. Raises RuntimeError if an
    entry did not come, or was not acknowledged.
    """
    pending, before = _pending(url), spent(server)
    members = [pool.submit(consume, reader, url, f"member{number}") for number in range(MEMBERS)]
    producer = pool.submit(produce, url)
    parts = [member.result() for member in members]
    costs = [since(before, server), producer.result(), *(part.spent for part in parts)]
    took = array("q", sorted(chain.from_iterable(part.took for part in parts)))
    left = _pending(url) - pending
    if len(took) != ENTRIES or left:
        raise RuntimeError(f"{len(took)} of {ENTRIES} entries came, {left} are pending")
    return Run(took, Spent(sum(cost.ran for cost in costs), sum(cost.waited for cost in costs)))


def produce(url: str) -> Spent:
    """Append each entry when it is due, or as soon after it as possible, once all members wait."""
    with redis.Redis.from_url(url) as client:
        until(lambda: _waiting(client) >= MEMBERS, "not all members wait for entries")
        before, sent = spent(os.getpid()), 0
        start = time.monotonic_ns()
        while sent < ENTRIES:
            due = min(ENTRIES, (time.monotonic_ns() - start) * RATE // SECOND)
            if due == sent:
                time.sleep(1 / RATE)
                continue
            with client.pipeline(transaction=False) as pipeline:
                for number in range(sent + 1, due + 1):
                    pipeline.xadd(STREAM, _entry(number, start + number * SECOND // RATE))
                pipeline.execute()
            sent = due
        return since(before, os.getpid())


def _entry(number: int, due: int) -> Any:
    """Like a ride's; the time comes last."""
    data = f'{{"id": {number}, "distance": 539.837}}'
    return {"id": number, "type": "ride.create", "data": data, "prev": number - 1, "due": due}


def _waiting(client: redis.Redis) -> int:
    told: Any = client.info("clients")
    return int(told["blocked_clients"])


def _pending(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        told: Any = client.xpending(STREAM, GROUP)
        return int(told["pending"])
