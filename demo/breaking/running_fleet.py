"""The processes of the fleet that runs on our data folder, and of no other fleet."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from demo.optional import NAME
from rocket_rides.fleet import LOCK, no_fleet_on
from rocket_rides.settings import Settings
from unified_log.errors import Unavailable

TOTALS, ROLLUP, RECEIPTS = "consumers.totals", "consumers.rollup", "consumers.receipts"
SIMULATOR = "demo.simulator"
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

        Before it listens, it may not handle the signal yet: that would end it, and the fleet.
        """
        for _, _, process in self.of(SIMULATOR):
            if any(each.status == psutil.CONN_LISTEN for each in process.net_connections("tcp")):
                return process
        raise Unavailable("no receipt can be refused: the simulator receives none")


def running_fleet(config: Settings) -> RunningFleet:
    """The services that run on our data folder. Raises Unavailable if no consumer is among them."""
    fleet = RunningFleet()
    honcho = _honcho(config.data_dir)
    for process in honcho.children(recursive=True) if honcho else []:
        try:
            _python, dash_m, module, *arguments = [*process.cmdline(), ""]
        except (psutil.Error, ValueError):
            continue  # it has ended, or is no service
        if dash_m == "-m":
            fleet.append(Service(module, arguments[0], process))
    if not fleet.of(TOTALS):
        raise Unavailable(no_fleet_on(config.data_dir))
    return fleet


def _honcho(data: Path) -> psutil.Process | None:
    """The honcho whose fleet uses the folder; None without one."""
    try:
        servers = psutil.Process(int((data / LOCK).read_text().split()[0]))
        # After a crash another process may have its pid. (Not every system has /proc to ask.)
        if servers.cmdline()[1:] == ["-m", "demo.embedded"] and NAME in servers.environ():
            fork, honcho = servers.parents()[:2]  # honcho starts each process through a fork
            return honcho if fork.cmdline() == honcho.cmdline() else None
    except (OSError, ValueError, psutil.Error):
        pass
    return None


@contextmanager
def frozen(processes: list[psutil.Process]) -> Iterator[None]:
    """SIGSTOP; a shell sends SIGCONT at the end of the block, or when this process is killed.

    Raises psutil.Error.
    """
    with subprocess.Popen(
        ["/bin/sh", "-c", CONTINUE_LATER, "sh", *(str(process.pid) for process in processes)],
        stdin=subprocess.PIPE,
        start_new_session=True,  # out of reach of Ctrl-C
    ):
        for process in processes:
            process.suspend()  # refuses if the pid was given to another process since
        yield
