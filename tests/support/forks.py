"""`python -m module` as a fork of an interpreter that has imported most of what it needs.

A test run starts hundreds of services, and importing packages is ten times the work of all else at
their start: files of tests that start many take a fifth longer without this. The tests of a whole
fleet prove that each service also starts from nothing.
"""

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from rocket_rides.settings import PROJECT

# What the services import, but none of the modules that are run.
IMPORTED = (
    "api.app",
    "consumers.receipts.delivery",
    "consumers.rollup.lead",
    "consumers.running",
    "consumers.totals.reset",
    "granian.server",
    "migrations",
    "rocket_rides.log",
    "demo.simulator.client",
    "demo.simulator.customer",
    "streamer.upkeep",
    "watch.server",
)
# The interpreter that forks, one for each test process: it starts with the first service.
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([*IMPORTED])


class Process:
    """A service's process, with the interface of `subprocess.Popen`; its output goes to a file."""

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], output: Path
    ) -> None:
        ours, its = FORKING.Pipe(duplex=False)
        with ours, its:
            given = (module, [*arguments], dict(environment), output, its)
            self._fork = FORKING.Process(target=_run, args=given)
            self._fork.start()
            its.close()
            ours.poll(None)  # until it is in a session of its own, or has ended
        assert self._fork.pid
        self.pid = self._fork.pid

    @property
    def returncode(self) -> int | None:
        return self._fork.exitcode

    def poll(self) -> int | None:
        """The exit status, as `subprocess` has it, or None while the process is running."""
        return self._fork.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._fork.join(timeout)
        if self._fork.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return self._fork.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(
    module: str, arguments: list[str], environment: dict[str, str], output: Path, begun: Connection
) -> None:
    """Become a process like that of `python -m module`."""
    os.setsid()
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    begun.close()
    os.chdir(PROJECT)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # As the interpreter does when it starts.
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv[1:] = arguments
    runpy.run_module(module, run_name="__main__", alter_sys=True)
