"""Keeps servers running, and stops them after their clients have left."""

import logging
import time
from collections.abc import Sequence

import psycopg
import redis

from demo.embedded.failures import NeverStarts, RefusedToStart, ServerFailed
from demo.embedded.lifecycle import Server
from rocket_rides.errors import in_one_line
from rocket_rides.process import Stop
from rocket_rides.waiting import Complaint, delays

logger = logging.getLogger(__name__)

POLL = 0.05
# A server that has never served, and exits by itself this many times in a row for the same reason,
# never will. The first attempts are made within a second.
ATTEMPTS = 3
PATIENCE = 2.0
STEADY = 30.0  # after this long without an attempt the back-off starts over
# honcho kills after 5 s. With two servers these leave a second for the rest.
CLIENTS_TIMEOUT = 2.0
SERVER_TIMEOUT = 1.0


class BackOff:
    """Says when the next attempt is due, without sleeping."""

    def __init__(self) -> None:
        self._waits = delays()
        self._until = 0.0

    @property
    def over(self) -> bool:
        return time.monotonic() >= self._until

    def attempted(self) -> None:
        """Delay the next attempt, by more each time."""
        if time.monotonic() > self._until + STEADY:
            self._waits = delays()
        self._until = time.monotonic() + next(self._waits)


class Supervised:
    """A server that is restarted whenever it does not run."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._was_up = False
        self._back_off = BackOff()
        self._complaint = Complaint(PATIENCE)
        self._refusals: list[str] = []  # the same reason, once for each attempt in a row

    def revive(self, stop: Stop) -> None:
        """Start the server if it does not run and an attempt is due.

        Raises NeverStarts when there is no point in trying again.
        """
        server = self.server
        if server.running or stop:
            return
        if self._was_up:
            logger.warning("%s ended with status %s", server.name, server.process.poll())
            self._was_up = False
        if self._back_off.over:
            self._start(stop)
            self._back_off.attempted()

    def _start(self, stop: Stop) -> None:
        server = self.server
        try:
            server.start(stop)
        except NeverStarts:
            raise
        except ServerFailed as error:
            self._give_up_on(error)
            if not stop:
                self._complaint(f"{server.name} can't be started: {in_one_line(error)}")
        else:
            self._was_up = True
            self._complaint = Complaint()
            logger.info("%s runs on the data in %s", server.name, server.folder)

    def _give_up_on(self, error: ServerFailed) -> None:
        """Raise NeverStarts after ATTEMPTS refusals in a row for the same reason."""
        reason = str(error)
        if reason not in self._refusals:
            self._refusals.clear()
        if isinstance(error, RefusedToStart) and not self.server.has_served:
            self._refusals.append(reason)
        if len(self._refusals) == ATTEMPTS:
            raise self.server.hopeless(reason)


def stop_last(servers: Sequence[Server]) -> None:
    """Wait briefly for the servers' clients to disconnect, then shut the servers down."""
    deadline = time.monotonic() + CLIENTS_TIMEOUT
    while time.monotonic() < deadline and any(_has_clients(server) for server in servers):
        time.sleep(POLL)
    for server in servers:
        server.stop(SERVER_TIMEOUT)


def _has_clients(server: Server) -> bool:
    try:
        return server.running and server.clients() > 0
    except (psycopg.Error, redis.RedisError):
        return False
