"""The members of the group, each a process of its own that reads and acknowledges."""

import contextlib
import os
import time
from array import array
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import redis

from consumers.receipts.group import Group
from unified_log.log import Log

STREAM, GROUP = "group-load", "members"
COUNT = 10_000  # that a read may give, as in the published test
OVER = "group-load-over"  # a key that is there once all entries are appended
QUIET = 0.2  # seconds that a read waits for an entry
PATIENCE = 60.0  # seconds for a run

# A member's reads: when each returned, and of each entry that it gave when it was due and when it
# was sent, in digits. What a read gave is acknowledged before the next.
Reads = Generator[tuple[int, list[tuple[bytes, bytes]]], None, None]
Reader = Callable[[str, str], Reads]  # takes Redis' URL, and the member's name


class Spent(NamedTuple):
    ran: int  # nanoseconds on a processor
    waited: int  # for one, though able to run

    def since(self, before: "Spent") -> "Spent":
        return Spent(self.ran - before.ran, self.waited - before.waited)


class Run(NamedTuple):
    from_sent: "array[int]"  # nanoseconds of each entry
    from_due: "array[int]"
    spent: Spent


def ours(url: str, name: str) -> Reads:
    """By the group reader of the receipts."""
    with Log(url, STREAM) as log:
        group = Group(log, GROUP, name)
        while True:
            batch = group.read(COUNT, QUIET)
            yield time.monotonic_ns(), [(entry.fields[-3], entry.fields[-1]) for entry in batch]
            if batch:
                group.acknowledge([entry.redis_id for entry in batch])


def bare(url: str, name: str) -> Reads:
    """By redis-py alone, as its documentation shows it."""
    with redis.Redis.from_url(url, protocol=2) as client:
        block = int(QUIET * 1000)
        while True:
            reply: Any = client.xreadgroup(GROUP, name, {STREAM: ">"}, COUNT, block)
            now, batch = time.monotonic_ns(), reply[0][1] if reply else []
            yield now, [(fields[b"due"], fields[b"sent"]) for _, fields in batch]
            if batch:
                client.xack(STREAM, GROUP, *(redis_id for redis_id, _ in batch))


def consume(reader: Reader, url: str, name: str) -> Run:
    """Read until nothing comes that was appended before the load was over."""
    from_sent, from_due, over = array("q"), array("q"), False
    before, deadline = spent(os.getpid()), time.monotonic() + PATIENCE
    with redis.Redis.from_url(url) as client, contextlib.closing(reader(url, name)) as reads:
        for now, entries in reads:
            from_sent.extend(now - int(sent) for _, sent in entries)
            from_due.extend(now - int(due) for due, _ in entries)
            if (over and not entries) or time.monotonic() > deadline:
                break
            over = over or (not entries and bool(client.exists(OVER)))
    return Run(from_sent, from_due, spent(os.getpid()).since(before))


def spent(process: int) -> Spent:
    """So far, by its main thread, which does all the work, as Linux' scheduler tells."""
    ran, waited, _ = Path(f"/proc/{process}/schedstat").read_text().split()
    return Spent(int(ran), int(waited))
