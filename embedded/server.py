"""What the two embedded servers have in common: their files, their start and their end."""

import shutil
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

from embedded.account import Failed, server_account
from embedded.child import end_all, spawn
from embedded.programs import programs
from rocket_rides.process import Stop, delays, in_one_line

START_TIMEOUT = 120.0  # recovery after a crash takes its time
STOP_TIMEOUT = 10.0
LOG_LINES = 5  # of the server's log, to explain a failure


class Server(ABC):
    """One server of the fleet; `data` and `sockets` may be shared with the other one."""

    name: ClassVar[str]
    program: ClassVar[str]
    distribution: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    orphan_signal: ClassVar[signal.Signals]

    def __init__(
        self, data: Path, sockets: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self.data = data.absolute()
        self.sockets = sockets
        self.settings = settings or {}
        self.account = server_account()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """What a client of this server needs."""

    @property
    @abstractmethod
    def shell(self) -> str:
        """The command that gives a person a prompt on this server."""

    @abstractmethod
    def clients(self) -> int:
        """How many connections others have. Raises what the client library does."""

    @abstractmethod
    def _initialise(self) -> None:
        """Make `folder` ready for a start."""

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _check(self) -> None:
        """Return when the server is fit for its clients; raise what the client library does."""

    @cached_property
    def home(self) -> Path:
        """Where this server's files are: `data`, unless the server's user can't get there."""
        return self.account.home(self.data)

    @cached_property
    def programs(self) -> Path:
        return programs(self.distribution, self.home, self.account)

    @property
    def folder(self) -> Path:
        """The server's own data, and its working directory."""
        return self.home / self.name.lower()

    @property
    def log(self) -> Path:
        return self.home / f"{self.name.lower()}.log"

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise Failed(f"{self.name} was never started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, stop: Stop | None = None) -> None:
        """Start the server and return when it serves. Gives up when `stop` is asked for.

        Whatever still runs in its folder is ended first. Raises Failed, with the end of the
        server's log, when it can't be started, and Unusable when it never can.
        """
        try:
            self.account.make_private(self.sockets)
            end_all(self.program, self.folder)
            self._initialise()
            self._process = self._spawn(self._command(), self.orphan_signal, session=True)
        except OSError as error:
            raise Failed(f"{self.name} can't be started: {error}") from error
        self._wait_until_it_serves(stop)

    def _wait_until_it_serves(self, stop: Stop | None) -> None:
        deadline = time.monotonic() + START_TIMEOUT
        for delay in delays(0.01, 0.2):
            try:
                self._check()
                break
            except (psycopg.Error, redis.RedisError) as error:
                problem = in_one_line(error)
            if not self.running:
                raise Failed(f"{self.name} ended with status {self.process.poll()}{self._why()}")
            if stop or time.monotonic() > deadline:
                self.kill()
                raise Failed(f"{self.name} does not serve yet: {problem}{self._why()}")
            time.sleep(delay)

    def stop(self, within: float = STOP_TIMEOUT) -> None:
        """Shut the server down whether or not it has clients; kill it after `within` seconds."""
        if not self.running:
            return
        self.process.send_signal(self.stop_signal)
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Crash the server: SIGKILL to it and all its children. Returns when they are gone."""
        self.process.kill()
        self.process.wait()
        end_all(self.program, self.folder)

    def _fresh_folder(self, name: str) -> Path:
        """An empty folder that belongs to the server."""
        folder = self.home / name
        shutil.rmtree(folder, ignore_errors=True)
        self.account.make_private(folder)
        return folder

    def _run(self, command: list[str]) -> None:
        """Run one of the server's programs to its end. Raises Failed."""
        # Not in a session of its own: it may as well end on a Ctrl-C.
        status = self._spawn(command, signal.SIGKILL, session=False).wait()
        if status:
            raise Failed(f"{Path(command[0]).name} ended with status {status}{self._why()}")

    def _spawn(
        self, command: list[str], orphan_signal: signal.Signals, *, session: bool
    ) -> subprocess.Popen[bytes]:
        return spawn(command, self.account, self.log, orphan_signal, session=session)

    def _why(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-LOG_LINES:]
        return "\n".join([f"; the end of {self.log}:", *lines])
