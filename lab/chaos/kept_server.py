"""A server that is restarted whenever it ends, and that can be crashed on purpose."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import psycopg
import redis

from demo.embedded.failures import ServerFailed
from demo.embedded.lifecycle import Server
from rocket_rides.errors import Unavailable, in_one_line

POLL = 0.02
PATIENCE = 180.0  # seconds; a start alone may take 120

FAILURES = (ServerFailed, Unavailable, OSError, psycopg.Error, redis.RedisError)

S_co = TypeVar("S_co", bound=Server, covariant=True)


class _Crash(NamedTuple):
    down_for: float
    meanwhile: Callable[[], None]
    over: threading.Event


class KeptServer(threading.Thread, Generic[S_co]):
    """Starts `server` and keeps it running.

    Everything happens in this one thread: on Linux the kernel ends a server when the thread that
    started it ends.
    """

    def __init__(self, server: S_co) -> None:
        super().__init__(name=server.name, daemon=True)
        self.server = server
        self.failures: list[str] = []  # what went wrong, apart from the crashes on purpose
        self.may_end = threading.Event()  # while set, it may end by itself, or not start
        self._serves = threading.Event()
        self._ending = threading.Event()
        self._crashes: queue.SimpleQueue[_Crash] = queue.SimpleQueue()

    def run(self) -> None:
        self._start()
        while not self._ending.wait(POLL):
            try:
                crash = self._crashes.get_nowait()
            except queue.Empty:
                if not self.server.running:
                    self._serves.clear()
                    status = self.server.process.poll()
                    self._note(f"{self.name} ended by itself with status {status}")
                    self._start()
                continue
            self._serves.clear()
            try:
                self.server.kill()
                crash.meanwhile()
            except FAILURES as reason:
                self.failures.append(in_one_line(reason))
            self._ending.wait(crash.down_for)
            self._start()
            crash.over.set()
        self.server.stop()

    def _start(self) -> None:
        while not self._ending.is_set():
            try:
                self.server.start()
            except ServerFailed as reason:
                self._note(in_one_line(reason))
                self._ending.wait(1)
            else:
                self._serves.set()
                return

    def _note(self, failure: str) -> None:
        if not self.may_end.is_set():
            self.failures.append(failure)

    def wait_until_it_serves(self) -> None:
        """Raises ServerFailed if it does not serve in time."""
        deadline = time.monotonic() + PATIENCE
        while not self._serves.wait(POLL):
            if time.monotonic() > deadline or not self.is_alive():
                raise ServerFailed("; ".join(self.failures) or f"{self.name} does not start")

    def crash(self, down_for: float, meanwhile: Callable[[], None] = lambda: None) -> None:
        """SIGKILL the server, restart it after `down_for` seconds, and return when it serves.

        `meanwhile` runs while the server is down.
        """
        crash = _Crash(down_for, meanwhile, threading.Event())
        self._crashes.put(crash)
        while not crash.over.wait(POLL) and self.is_alive():
            pass

    def end(self) -> None:
        self._ending.set()
        if self.ident:
            self.join()
