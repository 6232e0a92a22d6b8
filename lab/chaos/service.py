"""A supervisor of one service: it restarts the service whenever it ends, and notes why."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from lab.chaos.machines import Clock
from lab.processes import clean_environment, start
from lab.until import until
from rocket_rides.settings import PROJECT

RESTART_PAUSE = 0.2  # seconds, as with a usual supervisor
# Seconds; a batch in flight may wait for Redis and for Postgres, some seconds each.
TERM_LIMIT = 30.0
# Seconds; Python starts slowly, so a younger process may not handle SIGTERM yet.
START_UP = 5.0
ENDED = "== ended with status"


class Exit(NamedTuple):
    service: str
    status: int
    sent: signal.Signals | None  # by chaos
    age: float  # seconds

    @property
    def expected(self) -> bool:
        """SIGKILL kills; on SIGTERM a service ends properly, with status 0."""
        if self.sent is signal.SIGTERM:
            return self.status == 0 or (self.status == -signal.SIGTERM and self.age < START_UP)
        return self.sent is signal.SIGKILL and self.status == -signal.SIGKILL


class Service(threading.Thread):
    """`python -m MODULE...`, kept running by this thread until `end`.

    The thread must outlive its processes: on Linux the kernel ends them when the thread ends.
    """

    def __init__(
        self, command: list[str], environment: dict[str, str], log: Path, clock: Clock | None = None
    ) -> None:
        super().__init__(name=log.stem, daemon=True)
        self.log, self.clock = log, clock
        self.exits: list[Exit] = []
        self.busy = threading.Lock()  # held by the one fault that acts on this process
        self.tree = PROJECT  # whose code the next process runs
        self.workers_ended = 0  # by the nemesis
        self._command = command
        self._environment = clean_environment() | environment
        if clock:
            self._environment |= clock.environment
        self._ending = threading.Event()
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._sent: signal.Signals | None = None

    def run(self) -> None:
        with self.log.open("w", buffering=1) as log:
            while process := self._start():
                born = time.monotonic()
                for line in process.stdout or ():  # until the process and its workers have ended
                    log.write(f"{time.strftime('%H:%M:%S')} {line.decode(errors='replace')}")
                status = process.wait()
                with self._guard:
                    ended = Exit(self.name, status, self._sent, time.monotonic() - born)
                    self._process = None
                log.write(f"{time.strftime('%H:%M:%S')} {ENDED} {status}, sent {ended.sent}\n")
                self.exits.append(ended)
                self._ending.wait(RESTART_PAUSE)

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._guard:
            if self._ending.is_set():
                return None
            self._sent = None
            command = [sys.executable, "-m", *self._command]
            self._process = start(command, self._environment, subprocess.PIPE, self.tree)
            return self._process

    def pids(self) -> list[int]:
        """The id of the process, then those of its children: the API's workers, oldest first."""
        with suppress(psutil.NoSuchProcess):
            if process := self._process:
                children = psutil.Process(process.pid).children()
                return [process.pid, *(child.pid for child in children)]
        return []

    def end_by(self, number: signal.Signals) -> bool:
        """Send a signal, and wait for the end. False without a process. Raises TimeoutError."""
        ended = len(self.exits)
        if not self.signal(number):
            return False
        late = f"{self.name} has not ended {TERM_LIMIT:.0f} s after {number.name}"
        until(lambda: len(self.exits) > ended, late, TERM_LIMIT)
        return True

    def end(self, by: signal.Signals = signal.SIGTERM) -> bool:
        """End the process for good; False where it has not ended in time."""
        with self._guard:  # so that a process that is just starting gets the signal, too
            self._ending.set()
        self.signal(signal.SIGCONT)
        self.signal(by)
        if self.ident:
            self.join(TERM_LIMIT)
        return not self.is_alive()

    def says(self, words: str) -> Callable[[], bool]:
        """Whether it has said this once more than now."""

        def times() -> int:
            return self.log.read_text(errors="replace").count(words)

        before = times()
        return lambda: times() > before

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False when there is no process."""
        with self._guard:
            if self._process is None or self._process.poll() is not None:
                return False
            if number in (signal.SIGKILL, signal.SIGTERM):
                self._sent = number
            self._process.send_signal(number)
            return True


class Services(dict[str, Service]):
    @property
    def exits(self) -> list[Exit]:
        return [end for service in self.values() for end in service.exits]

    def end(self) -> list[str]:
        """SIGTERM all; returns a sentence for each that did not end."""
        slow = [name for name, service in self.items() if not service.end()]
        return [f"{name} did not end on SIGTERM" for name in slow]

    def kill(self) -> None:
        for service in self.values():
            service.end(by=signal.SIGKILL)
