"""The whole fleet, as a person starts it, on a data folder and a port of its own.

Beside it, a second terminal, in which the person runs programs.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from lab.ports import free_ports
from rocket_rides.settings import PORTS, PROJECT, Settings, embedded_postgres_url
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from tests.support.world import PATIENCE, eventually

CHOSEN_BY_THE_PROCFILE = {"DATABASE_URL", "REDIS_URL", "CRASH_RATE", "DOUBLE_SEND_RATE"}


class Fleet:
    """`python -m demo` on a data folder and a port of its own; its output goes to a file."""

    def __init__(self, place: Path) -> None:
        self.data = place / "data"
        self.output = place / "output.log"
        self.url = f"http://127.0.0.1:{free_ports(PORTS)}"
        # One for all requests: each new one would read the machine's certificates. But no
        # connection outlives its request, since the API may be stopped at any time.
        self.client = httpx.Client(
            base_url=self.url, limits=httpx.Limits(max_keepalive_connections=0)
        )

    def start(self) -> None:
        """Start all of the Procfile's processes, and wait until they serve."""
        self.spawn()
        eventually(self.ready, "a ready fleet")

    def spawn(self) -> None:
        """Run it in a session of its own."""
        given = {k: v for k, v in os.environ.items() if k not in CHOSEN_BY_THE_PROCFILE}
        with self.output.open("wb") as file:
            self.honcho = subprocess.Popen(
                [sys.executable, "-m", "demo", "--env", os.devnull],
                cwd=PROJECT,
                env=given | self.settings,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def settings(self) -> dict[str, str]:
        """The settings that a person exports in each terminal."""
        return {"DATA_DIR": str(self.data), "API_PORT": self.url.rpartition(":")[2]}

    def ready(self) -> bool:
        assert self.honcho.poll() is None, self.output.read_text()
        try:
            return self.client.get("/readyz").is_success
        except httpx.TransportError:
            return False

    def processes(self) -> list[psutil.Process]:
        """Every living process of this fleet, its servers included."""
        return [process for process in psutil.process_iter() if self._owns(process)]

    def commands(self) -> list[tuple[psutil.Process, list[str]]]:
        """Each of these with its command line, but those that end meanwhile, as sessions do."""
        commands = []
        for process in self.processes():
            with suppress(psutil.Error):
                commands.append((process, process.cmdline()))
        return commands

    def _owns(self, process: psutil.Process) -> bool:
        try:
            return (
                process.environ().get("DATA_DIR") == str(self.data)
                or Path(process.cwd()).is_relative_to(self.data)
            ) and process.pid != os.getpid()
        except psutil.Error:
            return False

    def ends(self) -> None:
        """Wait until no process of this fleet lives, including those that it started meanwhile."""
        self.honcho.wait(PATIENCE)
        eventually(lambda: not self.processes(), "the end of all processes")

    def kill(self) -> None:
        """SIGKILL all processes of the fleet, including those that were started meanwhile."""

        def none_is_left() -> bool:
            living = self.processes()
            for process in living:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            return not living

        eventually(none_is_left, "the end of all processes")

    @property
    def database(self) -> str:
        return embedded_postgres_url(Settings.model_construct(data_dir=self.data).socket_dir)


@contextmanager
def a_fleet(prepared: Path | None = None) -> Iterator[Fleet]:
    """A fleet that is not started yet, with or without a prepared cluster; removed afterwards."""
    with short_folder() as place:
        fleet = Fleet(place)
        if prepared:
            put_into(fleet.data, prepared)
        yield fleet
        fleet.client.close()
        fleet.kill()
        shutil.rmtree(Settings.model_construct(data_dir=fleet.data).socket_dir, ignore_errors=True)


def person(fleet: Fleet, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Start a program with the fleet's settings, as a person does."""
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=PROJECT,
        env=os.environ | {"DATABASE_URL": "", "REDIS_URL": ""} | fleet.settings | settings,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,  # as a shell does; in its starter's group Ctrl-Z may be ignored
        # A run of the tests in the background has it ignored, and all that it starts, too.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def told(fleet: Fleet, *command: str, **settings: str) -> tuple[int, str]:
    """The exit status and the output."""
    process = person(fleet, *command, **settings)
    said, _ = process.communicate(timeout=PATIENCE * 2)
    return process.returncode, said
