"""Keeps servers running, and stops them after their clients have left."""

import logging
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress

from demo.embedded.failures import NeverStarts, RefusedToStart, ServerFailed
from demo.embedded.lifecycle import Server
from unified_log.errors import in_one_line
from unified_log.process import Stop
from unified_log.waiting import LimitedWarning

logger = logging.getLogger(__name__)

POLL = 0.05
PATIENCE = 2.0  # seconds, before a person is told that a server does not start
RETRY = 1.0  # seconds between two attempts to start a server, and two looks whether it is reached
# Seconds. honcho kills after 5. With two servers these leave a second for the rest.
CLIENTS_TIMEOUT = 2.0
SERVER_TIMEOUT = 1.0


class Supervised:
    """A server that is restarted whenever it does not run, or nobody can reach it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._was_up = False
        self._due = self._look_due = 0.0
        self._warn = LimitedWarning(PATIENCE)

    def revive(self, stop: Stop) -> None:
        """Start the server if it does not run and an attempt is due; end one out of reach first.

        Raises NeverStarts when there is no point in trying again.
        """
        server = self.server
        if stop:
            return
        if server.running and time.monotonic() >= self._look_due:
            self._look_due = time.monotonic() + RETRY
            self._end_out_of_reach()
        if server.running:
            return
        if self._was_up:
            logger.warning("%s ended with status %s", server.name, server.process.poll())
            self._was_up = False
        if time.monotonic() >= self._due:
            self._start(stop)
            self._due = time.monotonic() + RETRY

    def _end_out_of_reach(self) -> None:
        server = self.server
        if self._was_up and not server.reachable:
            logger.warning(
                "%s is out of reach, its socket %s was removed or replaced: starting it again",
                server.name,
                server.socket,
            )
            self._was_up = False
            server.stop(CLIENTS_TIMEOUT)

    def _start(self, stop: Stop) -> None:
        server = self.server
        try:
            server.start(stop)
        except NeverStarts:
            raise
        except ServerFailed as error:
            # One that has served before is tried again: its disk may be full, for example.
            if isinstance(error, RefusedToStart) and not server.has_served:
                raise NeverStarts(_why_never(server, str(error).rstrip("."))) from None
            if not stop:
                self._warn(f"{server.name} can't be started: {in_one_line(error)}")
        else:
            self._was_up = True
            self._warn = LimitedWarning()
            logger.info("%s runs on the data in %s", server.name, server.folder)


def _why_never(server: Server, reason: str) -> str:
    """Advises to move the data away only where that is what the server blames."""
    if server.blames_data.search(reason.replace(str(server.home), "")):
        return (
            f"{server.name} can't use its data in {server.folder}: {reason}."
            " Restore that folder, or move it away to start with an empty one"
        )
    return f"{server.name} can't be started: {reason}. Its data in {server.folder} is left as it is"


def stop_last(servers: Sequence[Server]) -> None:
    """Shut the servers down, Redis last: Postgres waits by itself until its clients have left.

    Redis waits for nobody, and has the same clients. Whoever stays longer is cut off.
    """
    deadline = time.monotonic() + CLIENTS_TIMEOUT
    for server in reversed(servers):
        if server.running:
            server.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.process.wait(max(deadline - time.monotonic(), 0))
        server.stop(SERVER_TIMEOUT)
