"""Postgres and Redis as if each ran on a machine of its own, which restarts it whenever it ends.

The machine has a disk, which can be full, and a clock, which can be wrong; and it can crash.
"""

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import psutil

from demo.embedded.failures import ServerFailed
from demo.embedded.lifecycle import Server
from demo.embedded.servers import Postgres, Redis
from demo.embedded.spawn import running
from lab.chaos.machines import Clock, Disk
from lab.chaos.proxy import Proxy
from lab.until import POLL
from unified_log.errors import in_one_line

PATIENCE = 180.0  # seconds; a start alone may take 120
AGAIN = 1.0  # seconds until another start, after one that failed


class Host(Server):
    """Runs its server from `keep` to `end`, and restarts it whenever it ends."""

    disk: Disk | None = None  # mounted on its data folder
    clock: Clock | None = None

    def __init__(self, *values: Any, **named: Any) -> None:
        super().__init__(*values, **named)
        self.failures: list[str] = []  # what failed that was not injected
        self.may_end = threading.Event()  # while set, it may end by itself, or not start
        self._serves = threading.Event()
        self._ending = threading.Event()
        self._guard = threading.Lock()  # held while it is being started, or kept down
        # It starts the server, and stays: the kernel ends a server with its thread (on Linux).
        self._keeper = threading.Thread()  # which has not started

    def keep(self) -> None:
        self._serves.clear()
        self._ending.clear()
        self._keeper = threading.Thread(target=self._keep, name=self.name, daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        while not self._ending.wait(POLL):
            with self._guard:
                if not self.running and not self._ending.is_set():
                    self._start_again()
        with self._guard:
            self.stop()

    def _start_again(self) -> None:
        if self._serves.is_set():
            self._note(f"{self.name} ended by itself with status {self.process.poll()}")
            self._serves.clear()
        try:
            self.start()
            self._serves.set()
        except ServerFailed as reason:
            self._note(in_one_line(reason))
            self._ending.wait(AGAIN)

    def _note(self, failure: str) -> None:
        if not self.may_end.is_set():
            self.failures.append(failure)

    def wait_until_it_serves(self) -> None:
        """Raises ServerFailed if it does not serve in time."""
        deadline = time.monotonic() + PATIENCE
        while not self._serves.wait(POLL):
            if time.monotonic() > deadline or not self._keeper.is_alive():
                raise ServerFailed("; ".join(self.failures) or f"{self.name} does not start")

    def crash(
        self, down_for: float, meanwhile: Callable[[], None] = lambda: None, for_good: bool = False
    ) -> None:
        """SIGKILL the server, restart it after `down_for` seconds, and return when it serves.

        `meanwhile` runs while the server is down. With `for_good` it stays down, unless that fails.
        Raises ServerFailed where it was down for good before.
        """
        with self._down():
            self._serves.clear()
            self.kill()
            meanwhile()
            if for_good:
                self._ending.set()
            self._ending.wait(down_for)
        if not for_good:
            self.wait_until_it_serves()

    def hang(self, meanwhile: Callable[[], None]) -> None:
        """Freeze it, and SIGKILL it for good after `meanwhile`; if that fails, restart it."""
        with self._down():
            self.freeze()
            try:
                meanwhile()
                self._ending.set()
            finally:
                self._serves.clear()
                self.kill()

    def freeze(self) -> None:
        """SIGSTOP the server with all of its processes, until it is killed."""
        self.process.send_signal(signal.SIGSTOP)  # it starts no more of them
        for process in running(self.folder):
            with suppress(psutil.NoSuchProcess):
                process.suspend()

    @contextmanager
    def _down(self) -> Iterator[None]:
        """Nobody starts it meanwhile."""
        with self._guard:
            if self._ending.is_set():
                raise ServerFailed(f"{self.name} has ended")
            yield

    def end(self) -> None:
        self._ending.set()
        if self._keeper.ident:
            self._keeper.join()

    @property
    def log(self) -> Path:
        """Not on its own disk: a server whose disk is full must be able to log that."""
        return self.data.with_name(f"{self.data.name}-{self.name.lower()}.log")

    def _spawn(
        self, command: list[str], orphan_signal: signal.Signals, *, session: bool
    ) -> subprocess.Popen[bytes]:
        if self.clock:
            environment = (f"{name}={value}" for name, value in self.clock.environment.items())
            command = ["env", *environment, *command]
        return super()._spawn(command, orphan_signal, session=session)


def keep(*hosts: Host) -> None:
    """Start them, and return when they serve. Raises ServerFailed."""
    for host in hosts:
        host.keep()
    for host in hosts:
        host.wait_until_it_serves()


class PostgresHost(Host, Postgres):
    """A Postgres on a machine of its own."""


class RedisHost(Host, Redis):
    """A Redis on a machine of its own."""


H = TypeVar("H", bound=PostgresHost | RedisHost)


class Pair(Generic[H]):
    """A `primary` and a `replica`, of one kind, which exchange roles when the primary fails.

    A fault does what Sentinel or Patroni would do. Clients connect through a proxy, which leads to
    the primary. The replica follows through another one, the link.
    """

    def __init__(self, primary: H, replica: H) -> None:
        self.servers = (primary, replica)
        self.primary, self.replica = primary, replica
        self.proxy, self.link = Proxy(primary.socket), Proxy(primary.socket)
        self.proxies = (self.proxy, self.link)
        # Held by the one fault that changes who is the primary, or what data it has.
        self.busy = threading.Lock()

    def cut_off(self) -> None:
        """Cut the link: from now on the replica falls behind."""
        self.link.server = None
        self.link.cut()

    def fence(self) -> None:
        """Keep all clients from the primary from now on."""
        self.proxy.server = None
        self.proxy.cut()

    def exchange(self) -> None:
        """Make the replica the primary: new connections lead there, others stay as they are."""
        self.primary, self.replica = self.replica, self.primary
        for proxy in self.proxies:
            proxy.server = self.primary.socket

    def end(self) -> None:
        for server in (self.replica, self.primary):  # a primary would wait for its replica
            server.end()
        for proxy in self.proxies:
            proxy.stop()
