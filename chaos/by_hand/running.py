"""The processes of the fleet that runs with our settings, and no other fleet's."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from rocket_rides.errors import Unavailable
from rocket_rides.fleet import NAME
from rocket_rides.settings import Settings

CONSUMER = ["-m", "consumers"]

# Ends when the standard input does, which it shares with nobody: also when we are killed.
CONTINUE_LATER = 'read -r _; kill -CONT "$0"'


@dataclass(frozen=True)
class Consumer:
    """A process of the fleet, and the name of its total."""

    name: str
    pid: int


def consumers(config: Settings) -> list[Consumer]:
    """The consumers that honcho has started with our settings, by name.

    Raises Unavailable when there is none.
    """
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if command[1:3] == CONSUMER and _is_ours(process, config):
                found.append(Consumer(command[3], process.pid))
        except (psutil.Error, IndexError):
            continue  # it has ended, or is another user's
    if not found:
        raise Unavailable(
            f"no fleet runs on {config.data_dir.absolute()}: `make fleet` starts one,"
            " in another terminal; a fleet with other settings needs the same ones here"
        )
    return sorted(found, key=lambda consumer: consumer.name)


def _is_ours(process: psutil.Process, config: Settings) -> bool:
    environment = process.environ()
    if not environment.get(NAME):
        return False
    # As honcho has them from .env, too.
    theirs = _which(environment, Path(process.cwd()))
    return theirs == _which(os.environ, Path.cwd())


def _which(environment: Mapping[str, str], folder: Path) -> tuple[Path | str, ...]:
    """What tells one fleet from another."""
    default = Settings.model_fields["data_dir"].default
    data = folder / (environment.get("DATA_DIR") or default)
    servers = (environment.get(name) or "" for name in ("DATABASE_URL", "REDIS_URL", "STREAM_NAME"))
    return data.resolve(), *servers


@contextmanager
def frozen(consumer: Consumer) -> Iterator[None]:
    """SIGSTOP, and SIGCONT in any case: a shell sends it when this process is gone."""
    with subprocess.Popen(
        ["/bin/sh", "-c", CONTINUE_LATER, str(consumer.pid)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C is not for it
    ):
        psutil.Process(consumer.pid).suspend()
        yield
