"""What the two embedded servers have in common: files, start and stop."""

import re
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import psycopg
import redis

from demo.embedded import stock
from demo.embedded.account import server_account
from demo.embedded.failures import RefusedToStart, ServerFailed
from demo.embedded.programs import programs
from demo.embedded.spawn import end_all, spawn
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Stop
from unified_log.waiting import delays

START_TIMEOUT = 120.0  # seconds; crash recovery can take long
STOP_TIMEOUT = 10.0
LOG_LINES = 5


class Server(ABC):
    """One server of the fleet; `data` and `sockets` may be shared with the other one."""

    name: ClassVar[str]
    setting: ClassVar[str]  # which may name the folder of its programs, in place of the wheel's
    program: str
    distribution: str
    stop_signal: ClassVar[signal.Signals]
    orphan_signal: ClassVar[signal.Signals]
    reason: ClassVar[re.Pattern[str]]  # matches its reason for exiting in its log
    blames_data: ClassVar[re.Pattern[str]]  # matches a reason that is in its data folder

    def __init__(
        self, data: Path, sockets: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.data = data.absolute()
        self.sockets = sockets
        self.settings = settings or {}
        self.account = server_account()
        self.stock = stock.named(self.setting)
        if self.stock:
            self.program = stock.program(self.setting, self.stock)
        self.has_served = False
        self._process: subprocess.Popen[bytes] | None = None
        self._listens_on: tuple[int, int] | None = None
        self._logged = 0  # the log's size before the last start, in bytes

    @property
    @abstractmethod
    def url(self) -> str:
        """The URL that clients of this server use."""

    @property
    @abstractmethod
    def socket(self) -> Path:
        """The socket on which it listens."""

    @abstractmethod
    def _initialise(self) -> None:
        """Prepare `folder` for a start."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _check(self) -> None:
        """Return if the server is ready for clients. Raises Unavailable, or its library's error.

        Raises NeverStarts, before it changes anything, if another server is reached.
        """

    @cached_property
    def home(self) -> Path:
        """Where this server's files are: `data`, unless the server's user can't reach it."""
        return self.account.home(self.data)

    @cached_property
    def programs(self) -> Path:
        return self.stock or programs(self.distribution, self.home, self.account)

    @property
    def folder(self) -> Path:
        """The server's data folder, which is also its working directory."""
        return self.home / self.name.lower()

    @property
    def log(self) -> Path:
        return self.home / f"{self.name.lower()}.log"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerFailed(f"{self.name} was never started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def reachable(self) -> bool:
        """Whether the socket on which it began to serve is still where clients look for it."""
        try:
            return _file(self.socket) == self._listens_on
        except OSError:
            return False

    def start(self, stop: Stop | None = None) -> None:
        """Start the server and return when it serves. Gives up when `stop` is requested.

        Processes still running in its folder are killed first. If the server can't be started, it
        raises ServerFailed with the reason from the server's log: RefusedToStart if the server
        exited by itself, NeverStarts if it never can start.
        """
        self._logged = self.log.stat().st_size if self.log.exists() else 0
        try:
            self.account.make_private(self.sockets)
            end_all(self.folder)
            self.socket.unlink(missing_ok=True)
            self._initialise()
            self._process = self._spawn(self._command(), self.orphan_signal, session=True)
        except OSError as error:
            raise ServerFailed(f"{self.name} can't be started: {error}") from error
        self._wait_until_it_serves(stop)
        self.has_served = True

    def _wait_until_it_serves(self, stop: Stop | None) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        for delay in delays(0.01, 0.2):
            try:
                self._listens_on = _file(self.socket)
                self._check()
                break
            except (Unavailable, FileNotFoundError, psycopg.Error, redis.RedisError) as error:
                problem = in_one_line(error)
            status = self.process.poll()
            if status is not None and status > 0:  # negative: a signal killed it
                raise RefusedToStart(self._why())
            if status is not None:
                raise ServerFailed(f"{self.name} ended with status {status}: {self._why()}")
            if stop or time.monotonic() > deadline:
                self.kill()
                raise ServerFailed(f"{self.name} does not serve yet: {problem}")
            time.sleep(delay)

    def stop(self, within: float = STOP_TIMEOUT) -> None:
        """Shut the server down even if it has clients; kill it after `within` seconds."""
        if not self.running:
            return
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Crash the server: SIGKILL it and its children. Returns when all are gone."""
        self.process.kill()
        self.process.wait()
        end_all(self.folder)

    def run(self, command: list[str]) -> None:
        """Run a program to completion, as the server's user. Raises ServerFailed."""
        # Not in a session of its own, so that Ctrl-C ends it.
        status = self._spawn(command, signal.SIGKILL, session=False).wait()
        if status:
            raise ServerFailed(f"{Path(command[0]).name} ended with status {status}: {self._why()}")

    def _spawn(
        self, command: list[str], orphan_signal: signal.Signals, *, session: bool
    ) -> subprocess.Popen[bytes]:
        return spawn(command, self.account, self.log, orphan_signal, session=session)

    def _why(self) -> str:
        """The last reason in the log since the start, else the log's end. One line."""
        with self.log.open("rb") as file:
            file.seek(self._logged)
            said = file.read().decode(errors="replace")
        if reasons := [*self.reason.finditer(said)]:
            return " ".join(part for part in reasons[-1].groups() if part)
        return " ".join(said.split("\n")[-LOG_LINES:]).strip() or f"see {self.log}"


def _file(path: Path) -> tuple[int, int]:
    """Which file that is, whatever its name. Raises OSError if there is none."""
    found = path.stat()
    return found.st_dev, found.st_ino
