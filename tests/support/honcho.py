"""The whole fleet, as a person starts it, on a data folder and a port of its own.

Beside it, a second terminal, in which the person runs programs.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from demo.embedded.welcome import answers
from lab.ports import free_ports
from lab.processes import clean_environment, start
from rocket_rides.settings import PORTS, PROJECT, Settings
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from tests.support.world import PATIENCE, eventually


class Fleet:
    """`python -m demo` on a data folder and a port of its own; its output goes to a file."""

    def __init__(self, place: Path) -> None:
        self.data = place / "data"
        self.config = Settings.model_construct(data_dir=self.data)
        self.database = self.config.postgres_url
        self.output = place / "output.log"
        self.port = free_ports(PORTS)
        self.url = f"http://127.0.0.1:{self.port}"
        # One for all requests: each new one would read the machine's certificates. But no
        # connection outlives its request, since the API may be stopped at any time.
        self.client = httpx.Client(
            base_url=self.url,
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=PATIENCE,
        )

    def start(self) -> None:
        """Start all of the Procfile's processes, and wait until they serve."""
        self.spawn()
        eventually(self.ready, "a ready fleet")

    def spawn(self) -> None:
        """Run it in a session of its own."""
        command = [sys.executable, "-m", "demo", "--env", os.devnull]
        with self.output.open("wb") as file:
            self.honcho = start(command, clean_environment() | self.settings, file)

    @property
    def settings(self) -> dict[str, str]:
        """The settings that a person exports in each terminal."""
        return {"DATA_DIR": str(self.data), "API_PORT": str(self.port)}

    def ready(self) -> bool:
        assert self.honcho.poll() is None, self.output.read_text()
        return answers(f"127.0.0.1:{self.port}", "/readyz")

    def processes(self) -> list[psutil.Process]:
        """Every living process of this fleet, its servers included."""
        return [process for process in psutil.process_iter() if self._owns(process)]

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


def person(fleet: Fleet, *command: str, **settings: str) -> subprocess.Popen[str]:
    """Start a program with the fleet's settings, as a person does."""
    return subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=PROJECT,
        env=clean_environment() | fleet.settings | settings,
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
