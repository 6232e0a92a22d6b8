"""How far the stream's consumer groups are: asked of Redis, without depending on it.

One thread asks, on a connection of its own; a request waits for its answer at most PATIENCE
seconds, and not at all within QUIET after an answer that failed to come. So nothing that is wrong
with Redis, or with the network or the name on the way to it, can hold up more than that. An answer
serves all requests for as long as FRESH.
"""

import re
import threading
import time
from typing import NamedTuple

import redis

from rocket_rides import groups
from rocket_rides.groups import GroupState
from rocket_rides.log import Entry, Invalid, Log, as_numbers, decode

PATIENCE = 0.4  # seconds
TIMEOUT = 0.3  # of a single command
QUIET = 1.0
FRESH = 0.25
MOST_GROUPS = 100  # on one stream; the others are not shown

_TERM = re.compile(rb"[0-9a-f]{16}|")


class Ride(NamedTuple):
    """A ride as an entry of the log names it."""

    id: int
    term: str


class SeenGroup(NamedTuple):
    """A consumer group as it was seen. Whatever is None is unknown."""

    name: str
    pending: int | None = None
    last_delivered: str | None = None
    first_pending: Ride | None = None
    given: Ride | None = None  # its members were given all rides up to this one
    has_all: bool = False  # its members were given the last entry that there was, and it is gone


class Groups:
    """All groups of the stream `name`."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wanted = False
        self._seen: list[SeenGroup] | None = None
        self._seen_at = self._failed_at = float("-inf")

    def now(self) -> list[SeenGroup] | None:
        """The groups, as of a moment ago; None while Redis does not tell."""
        asked = time.monotonic()

        def told() -> bool:
            return self._seen_at >= asked - FRESH

        with self._changed:
            if not told():
                self._want()
                patience = 0 if asked < self._failed_at + QUIET else PATIENCE
                if not self._changed.wait_for(told, patience) and patience:
                    self._failed_at = time.monotonic()
            return self._seen if told() else None

    def _want(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="groups", daemon=True)
            self._thread.start()
        self._wanted = True
        self._changed.notify_all()

    def _run(self) -> None:
        log = self._connect()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                self._wanted = False
            began = time.monotonic()
            try:
                try:
                    seen = look(log)
                except redis.ConnectionError:  # it may have been closed long ago
                    log.redis.close()
                    log = self._connect()
                    seen = look(log)
            except redis.RedisError:
                seen = None
            with self._changed:
                self._seen, self._seen_at = seen, began
                if seen is None:
                    self._failed_at = began
                self._changed.notify_all()

    def _connect(self) -> Log:
        return Log(self._url, self._name, TIMEOUT)


def look(log: Log) -> list[SeenGroup]:
    """Look at all groups, and at the entries at which they stand. Raises redis.RedisError."""
    last_id = as_numbers(log.last_id())
    return [_group(log, position, last_id) for position in groups.positions(log)[:MOST_GROUPS]]


def _group(log: Log, at: GroupState, last_id: tuple[int, int]) -> SeenGroup:
    first = log.range(at.first_pending, at.first_pending, 1) if at.first_pending else []
    given = log.last_upto(at.last_delivered)
    return SeenGroup(
        at.name.replace("\0", "\N{REPLACEMENT CHARACTER}"),
        at.pending,
        at.last_delivered,
        _ride(first[0]) if first else None,
        _ride(given) if given else None,
        given is None and as_numbers(at.last_delivered) >= last_id,
    )


def _ride(entry: Entry) -> Ride | None:
    try:
        record = decode(entry.fields)
    except Invalid:
        return None
    return Ride(record.id, record.term.decode()) if _TERM.fullmatch(record.term) else None
