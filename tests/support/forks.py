"""`python -m module` as a fork of an interpreter that has imported most of what it needs.

A test run starts hundreds of services, and importing packages is ten times the work of all else at
their start. So one interpreter for each test process imports the packages once, and forks for each
service. The fork runs the module as `python -m` does: with its own arguments, environment, output,
session and exit status. The tests of a whole fleet prove that each service also starts from
nothing.

That interpreter is `python -m tests.support.forks`. For each service it receives a socket, over
which it learns what to run, and returns the process id and, in the end, the exit status.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import NoReturn

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


class Process:
    """A service's process, with the interface of `subprocess.Popen`.

    It writes to the files `stdout` and `stderr`, which stay open here.
    """

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdout: int,
        stderr: int,
    ) -> None:
        self.returncode: int | None = None
        ours, its = socket.socketpair()
        with ours, its:
            socket.send_fds(_interpreter(), [b"!"], [its.fileno(), stdout, stderr])
            ours.sendall(json.dumps([module, arguments, dict(environment)]).encode() + b"\n")
            # Unbuffered: of a process that has ended already, the exit status must stay where
            # select sees it.
            self._told = ours.makefile("rb", buffering=0)
        self.pid = int(self._told.readline())

    def poll(self) -> int | None:
        """The exit status, as `subprocess` has it, or None while the process is running."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _interpreter() -> socket.socket:
    """Where this test process' own interpreter takes orders. It ends with this process."""
    ours, its = socket.socketpair()
    with its:
        command = [sys.executable, "-m", __name__, str(its.fileno())]
        process = subprocess.Popen(
            command, cwd=PROJECT, pass_fds=[its.fileno()], start_new_session=True
        )
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


def _serve(orders: socket.socket) -> tuple[str, list[str]]:
    """Fork for each order; returns in the forks alone, with what to run. Ends when nobody asks."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        _, files, _, _ = socket.recv_fds(orders, 1, 3)
        if not files:
            raise SystemExit
        if os.fork() == 0:
            orders.close()
            return _keep(socket.socket(fileno=files[0]), *files[1:])
        for file in files:
            os.close(file)


def _keep(line: socket.socket, stdout: int, stderr: int) -> tuple[str, list[str]]:
    """Fork once more, and tell how that ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with line.makefile() as order:
        module, arguments, environment = json.loads(order.readline())
    if service := os.fork():
        _tell_its_end(service, line)
    os.setsid()
    for file, stream in ((stdout, 1), (stderr, 2)):
        os.dup2(file, stream)
        os.close(file)
    with line:
        line.sendall(b"%d\n" % os.getpid())
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    # As the interpreter does when it starts.
    sys.path[1:1] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    return module, arguments


def _tell_its_end(service: int, line: socket.socket) -> NoReturn:
    """Until the test knows of it, no other process can have the service's id."""
    end = os.waitid(os.P_PID, service, os.WEXITED | os.WNOWAIT)
    assert end
    line.sendall(b"%d\n" % (end.si_status if end.si_code == os.CLD_EXITED else -end.si_status))
    line.recv(1)
    os.waitpid(service, 0)
    os._exit(0)


if __name__ == "__main__":
    gc.disable()
    for name in IMPORTED:
        import_module(name)
    gc.freeze()  # no collection touches, and so copies, what the forks share
    gc.enable()
    to_run, sys.argv[1:] = _serve(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module(to_run, run_name="__main__", alter_sys=True)
