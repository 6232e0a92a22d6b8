"""The processes of the fleet that runs with our settings, and of no other fleet."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from rocket_rides.errors import Unavailable
from rocket_rides.fleet import NAME
from rocket_rides.settings import PROJECT, Settings

TOTALS, ROLLUP, RECEIPTS = "consumers", "consumers.rollup", "consumers.receipts"
SIMULATOR = "demo.simulator"
DEFAULT_DATA = Settings.model_fields["data_dir"].default.relative_to(PROJECT)
# Waits for the end of its standard input, which comes even if we are killed: only we hold it.
CONTINUE_LATER = 'read -r _; kill -CONT "$@"'


class Service(NamedTuple):
    """A process of a fleet: its module, and the name that it was started with, if it has one."""

    module: str
    name: str
    process: psutil.Process


class RunningFleet(list[Service]):
    """All of its services. Several may have one name, as after `honcho start -c consumer0=2`."""

    def of(self, module: str) -> list[Service]:
        return [service for service in self if service.module == module]

    def names(self, module: str) -> list[str]:
        """The different names, sorted."""
        return sorted({service.name for service in self.of(module)})

    def receiver(self) -> psutil.Process:
        """The simulator, where it receives receipts. Raises Unavailable.

        What does not receive yet may not know the signal yet, which would end it, and the fleet.
        """
        for _, _, process in self.of(SIMULATOR):
            if any(each.status == psutil.CONN_LISTEN for each in process.net_connections("tcp")):
                return process
        raise Unavailable("no receipt can be refused: the simulator receives none")


def running_fleet(config: Settings) -> RunningFleet:
    """What honcho started with our settings. Raises Unavailable if there is no consumer."""
    fleet = RunningFleet()
    for process in psutil.process_iter():
        try:
            _python, dash_m, module, *arguments = [*process.cmdline(), ""]
            if dash_m == "-m" and _is_ours(process):
                fleet.append(Service(module, arguments[0], process))
        except (psutil.Error, ValueError):
            continue  # it has ended, belongs to another user, or is no service
    if not fleet.of(TOTALS):
        raise Unavailable(
            f"no fleet runs on {config.data_dir.absolute()}: `make fleet` starts one,"
            " in another terminal; a fleet with other settings needs the same ones here"
        )
    return fleet


def _is_ours(process: psutil.Process) -> bool:
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
def frozen(processes: list[psutil.Process]) -> Iterator[None]:
    """SIGSTOP; a shell sends SIGCONT at the end of the block, or when this process is killed."""
    with subprocess.Popen(
        ["/bin/sh", "-c", CONTINUE_LATER, "sh", *(str(process.pid) for process in processes)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # out of reach of Ctrl-C
    ):
        for process in processes:
            process.suspend()  # refuses if the pid was given to another process since
        yield
