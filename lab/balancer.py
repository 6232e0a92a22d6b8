"""HAProxy before the APIs of one fleet, from which each can be taken out before it ends."""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from lab.ports import free_ports
from lab.processes import clean_environment, start
from lab.until import until
from rocket_rides.settings import PROJECT

HAPROXY = shutil.which("haproxy", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
BEFORE_APIS = Path(__file__).with_name("balancer.cfg")
BEFORE_CELLS = PROJECT / "cells/router/haproxy.cfg"
HOST = "127.0.0.1"
AWAY = frozenset({502, 503, 504})  # what it answers where no API can take a request
TIMEOUT = 5.0  # seconds, for an answer
DRAINED = 30.0  # seconds, in which a request is answered
STATE, REQUESTS = 17, 4  # columns of what HAProxy says of a server: UP, and how many are under way


class Balancer:
    """A running HAProxy. `start` it in a thread that outlives it. Methods raise TimeoutError."""

    def __init__(self, folder: Path, ports: Sequence[int]) -> None:
        self.port = free_ports()
        self._socket = folder / "balancer"
        self._log = folder / "balancer.log"
        self._environment = clean_environment() | {
            "BALANCER": f"{HOST}:{self.port}",
            "BALANCER_SOCKET": str(self._socket),
            **{f"API_{n}": f"{HOST}:{port}" for n, port in enumerate(ports)},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [HAPROXY or "haproxy", "-q", "-db", "-f", str(BEFORE_APIS)]
        with self._log.open("ab") as log:
            self._process = start(command, self._environment, log)
        late = f"HAProxy does not start; see {self._log}"
        until(lambda: self._ask("show stat"), late, away=(OSError,))

    def take_out(self, name: str) -> None:
        """Send this API no more requests; return when those under way are answered."""
        self._ask(f"set server api/{name} state drain")
        late = f"{name} has requests under way after {DRAINED:.0f} s"
        until(lambda: self._says(name, REQUESTS) == "0", late, DRAINED)

    def put_back(self, name: str) -> None:
        """Send it requests again; return when HAProxy finds it ready."""
        self._ask(f"set server api/{name} state ready")
        until(lambda: self._says(name, STATE).startswith("UP"), f"HAProxy finds {name} not ready")

    def stop(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def _says(self, name: str, column: int) -> str:
        rows = (line.split(",") for line in self._ask("show stat").splitlines())
        return next(row[column] for row in rows if row[:2] == ["api", name])

    def _ask(self, command: str) -> str:
        """What it answers to a command. Raises OSError where it is not there."""
        with socket.socket(socket.AF_UNIX) as asking:
            asking.settimeout(TIMEOUT)
            asking.connect(str(self._socket))
            asking.sendall(f"{command}\n".encode())
            with asking.makefile() as answer:
                return answer.read()
