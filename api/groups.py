"""How far the stream's consumer groups are: asked of Redis, without depending on it.

One thread asks, on a connection of its own; a request waits for its answer at most PATIENCE
seconds. For QUIET after an answer that failed to come nobody waits, nor is Redis asked: a server
that refuses us is not flooded with attempts. So nothing that is wrong with Redis, or with the
network or the name on the way to it, can hold up more than that. An answer serves all requests for
as long as FRESH.
"""

import logging
import threading
import time

import redis

from rocket_rides.errors import in_one_line
from rocket_rides.log import Log
from rocket_rides.seen_groups import SeenGroup, look
from rocket_rides.waiting import Once

PATIENCE = 0.4  # seconds
TIMEOUT = 0.3  # of a single command
QUIET = 1.0
FRESH = 0.25


class Groups:
    """All groups of the stream `name`."""

    def __init__(self, url: str, name: str) -> None:
        self._url, self._name = url, name
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wanted = False
        self._seen: list[SeenGroup] | None = None
        self._seen_at = self._failed_at = float("-inf")
        self._warnings = Once(logging.WARNING)

    def now(self) -> list[SeenGroup] | None:
        """The groups, as of a moment ago; None while Redis does not tell."""
        asked = time.monotonic()

        def told() -> bool:
            return self._seen_at >= asked - FRESH

        with self._changed:
            if not told() and asked >= self._failed_at + QUIET:
                self._want()
                if not self._changed.wait_for(told, PATIENCE):
                    self._failed_at = time.monotonic()
            return self._seen if told() else None

    def _want(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="groups", daemon=True)
            self._thread.start()
        self._wanted = True
        self._changed.notify_all()

    def _run(self) -> None:
        log: Log | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._wanted)
                self._wanted = False
            began = time.monotonic()
            try:
                log = log or self._connect()
                try:
                    seen = look(log)
                except redis.ConnectionError:  # it may have been closed long ago
                    log.redis.close()
                    log = self._connect()
                    seen = look(log)
            except redis.RedisError as error:
                seen = None
                self._warnings.say([f"consumer groups are not shown: {in_one_line(error)}"])
            else:
                self._warnings.say([])
            with self._changed:
                self._seen, self._seen_at = seen, began
                if seen is None:
                    self._failed_at = began
                self._changed.notify_all()

    def _connect(self) -> Log:
        return Log(self._url, self._name, TIMEOUT)
