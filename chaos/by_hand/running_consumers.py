"""The processes of the fleet that runs with our settings, and of no other fleet."""

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from rocket_rides.errors import Unavailable
from rocket_rides.fleet import NAME
from rocket_rides.settings import PROJECT, Settings

CONSUMER = ["-m", "consumers"]
DEFAULT_DATA = Settings.model_fields["data_dir"].default.relative_to(PROJECT)

# Waits for the end of its standard input, which comes even if we are killed: only we hold it.
CONTINUE_LATER = 'read -r _; kill -CONT "$@"'


@dataclass(frozen=True)
class RunningConsumer:
    """A consumer, and its processes: more than one after `honcho start -c consumer0=2`."""

    name: str
    processes: list[psutil.Process]

    def __str__(self) -> str:
        return f"{self.name} (process {', '.join(self.pids)})"

    @property
    def pids(self) -> list[str]:
        return [str(process.pid) for process in self.processes]


def running_consumers(config: Settings) -> list[RunningConsumer]:
    """The consumers that honcho started with our settings, sorted by name.

    Raises Unavailable if there is none.
    """
    running = defaultdict(list)
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if command[1:3] == CONSUMER and _is_ours(process, config):
                running[command[3]].append(process)
        except (psutil.Error, IndexError):
            continue  # it has ended, or belongs to another user
    if not running:
        raise Unavailable(
            f"no fleet runs on {config.data_dir.absolute()}: `make fleet` starts one,"
            " in another terminal; a fleet with other settings needs the same ones here"
        )
    return [RunningConsumer(name, running[name]) for name in sorted(running)]


def _is_ours(process: psutil.Process, config: Settings) -> bool:
    environment = process.environ()
    if not environment.get(NAME):
        return False
    # Including what honcho has read from .env.
    theirs = _which(environment, Path(process.cwd()))
    return theirs == _which(os.environ, Path.cwd())


def _which(environment: Mapping[str, str], folder: Path) -> tuple[Path | str, ...]:
    """The settings that distinguish one fleet from another.

    `folder` is where the fleet runs, so it is the fleet's own project that holds its data.
    """
    data = folder / (environment.get("DATA_DIR") or DEFAULT_DATA)
    servers = (environment.get(name) or "" for name in ("DATABASE_URL", "REDIS_URL", "STREAM_NAME"))
    return data.resolve(), *servers


@contextmanager
def frozen(consumer: RunningConsumer) -> Iterator[None]:
    """SIGSTOP; a shell sends SIGCONT at the end of the block, or when this process is killed."""
    with subprocess.Popen(
        ["/bin/sh", "-c", CONTINUE_LATER, "sh", *consumer.pids],
        stdin=subprocess.PIPE,
        start_new_session=True,  # out of reach of Ctrl-C
    ):
        for process in consumer.processes:
            process.suspend()  # refuses if the pid was given to another process since
        yield
