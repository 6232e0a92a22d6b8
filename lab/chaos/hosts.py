"""Postgres and Redis as if each ran on a machine of its own, with its own disk and its own clock.

What a server prints is not kept on its disk: otherwise a full one would have nothing to say.
"""

import signal
import subprocess
from pathlib import Path

from demo.embedded.lifecycle import Server
from demo.embedded.servers import Postgres, Redis
from lab.chaos.clocks import Clock
from lab.chaos.disks import Disk


class Host(Server):
    """A server that may have a disk, mounted on its data folder, and a clock."""

    disk: Disk | None = None
    clock: Clock | None = None

    @property
    def log(self) -> Path:
        return self.data.with_name(f"{self.data.name}-{self.name.lower()}.log")

    def _spawn(
        self, command: list[str], orphan_signal: signal.Signals, *, session: bool
    ) -> subprocess.Popen[bytes]:
        if self.clock:
            environment = (f"{name}={value}" for name, value in self.clock.environment.items())
            command = ["env", *environment, *command]
        return super()._spawn(command, orphan_signal, session=session)


class PostgresHost(Host, Postgres):
    """A Postgres on a machine of its own."""


class RedisHost(Host, Redis):
    """A Redis on a machine of its own."""
