"""Ten members of one group and a producer for them, on one stream.

The producer appends each entry when it is due, however late those before it were, with that time,
and when it was sent. Counted from when it was due, a stall delays what was due meanwhile, in the
figures as in life. All processes share the machine's monotonic clock.
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
from typing import Any, NamedTuple

import redis

from consumers.receipts.group import Group
from lab.benchmarks.members import COUNT, GROUP, OVER, STREAM, Reader, Run, Spent, consume, spent
from lab.until import until
from rocket_rides.parent_death import die_with_parent
from unified_log.log import Log

SECOND = 1_000_000_000  # nanoseconds
FILL = "for _ = 1, ARGV[1] do redis.call('XADD', KEYS[1], '*', 'due', '0', 'sent', '0') end"


class Load(NamedTuple):
    members: int
    entries: int  # in all
    rate: int  # entries per second


PUBLISHED_LOAD = Load(members=10, entries=50_000, rate=10_000)  # here, of five seconds


@contextlib.contextmanager
def processes(load: Load = PUBLISHED_LOAD) -> Iterator[Executor]:
    spawn = get_context("spawn")
    with ProcessPoolExecutor(load.members + 1, mp_context=spawn, initializer=_begin) as pool:
        yield pool


@contextlib.contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """What begins in the block inherits that, until `_begin`: its imports would end in a trace."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _begin() -> None:
    """End with the parent, and silently at Ctrl-C; freeze what is imported, as services do."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    gc.freeze()


def prepare(url: str, pending: int) -> None:
    with Log(url, STREAM) as log:
        log.start_anew()
        gone = Group(log, GROUP, "gone")
        gone.make()
        for _ in range(pending // COUNT):
            log.run(FILL, COUNT)
            gone.read(COUNT)


def run(pool: Executor, url: str, server: int, reader: Reader, load: Load = PUBLISHED_LOAD) -> Run:
    """Let members read what is produced; all share in its cost. Raises RuntimeError for a loss."""
    with redis.Redis.from_url(url) as client:
        client.delete(OVER)
    pending, before = _pending(url), spent(server)
    names = [f"member{number}" for number in range(load.members)]
    with _ctrl_c_waits():
        members = [pool.submit(consume, reader, url, name) for name in names]
        producer = pool.submit(produce, url, load)
    parts = [member.result() for member in members]
    costs = [spent(server).since(before), producer.result(), *(part.spent for part in parts)]
    from_sent = array("q", sorted(chain.from_iterable(part.from_sent for part in parts)))
    from_due = array("q", sorted(chain.from_iterable(part.from_due for part in parts)))
    came, left = len(from_sent), _pending(url) - pending
    if came != load.entries or left:
        raise RuntimeError(f"{came} of {load.entries} entries came, {left} are pending")
    total = Spent(sum(cost.ran for cost in costs), sum(cost.waited for cost in costs))
    return Run(from_sent, from_due, total)


def produce(url: str, load: Load) -> Spent:
    """Append each entry when it is due, or as soon after it as possible, once all members wait."""
    with redis.Redis.from_url(url) as client:
        until(lambda: _waiting(client) >= load.members, "not all members wait for entries")
        before, appended = spent(os.getpid()), 0
        start = time.monotonic_ns()
        while appended < load.entries:
            due = min(load.entries, (time.monotonic_ns() - start) * load.rate // SECOND)
            if due == appended:
                time.sleep(1 / load.rate)
                continue
            with client.pipeline(transaction=False) as pipeline:
                for number in range(appended + 1, due + 1):
                    pipeline.xadd(STREAM, _entry(number, start + number * SECOND // load.rate))
                pipeline.execute()
            appended = due
        client.set(OVER, 1)
        return spent(os.getpid()).since(before)


def _entry(number: int, due: int) -> Any:
    """Like a ride's; the times come last, so that both readers find them as cheaply."""
    data = f'{{"id": {number}, "distance": 539.837}}'
    ride = {"id": number, "type": "ride.create", "data": data, "prev": number - 1}
    return ride | {"due": due, "sent": time.monotonic_ns()}


def _waiting(client: redis.Redis) -> int:
    told: Any = client.info("clients")
    return int(told["blocked_clients"])


def _pending(url: str) -> int:
    with redis.Redis.from_url(url) as client:
        told: Any = client.xpending(STREAM, GROUP)
        return int(told["pending"])
