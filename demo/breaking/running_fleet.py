"""The processes of the fleet that runs with our settings, and of no other fleet."""

import os
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from rocket_rides import sessions
from rocket_rides.errors import Unavailable
from rocket_rides.fleet import NAME
from rocket_rides.settings import PROJECT, Settings

STREAMER, TOTALS, ROLLUP = "streamer", "consumers", "consumers.rollup"
RECEIPTS, SIMULATOR = "consumers.receipts", "demo.simulator"
DEFAULT_DATA = Settings.model_fields["data_dir"].default.relative_to(PROJECT)


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


@dataclass(frozen=True)
class RunningFleet:
    """Its totals, sorted by name; the sessions that its processes have with Postgres."""

    consumers: list[RunningConsumer]
    sessions: frozenset[str]
    runs_a_rollup: bool
    delivers_receipts: bool
    simulators: list[psutil.Process]

    @property
    def victim(self) -> RunningConsumer:
        """The consumer to freeze."""
        return self.consumers[-1]


def running_fleet(config: Settings) -> RunningFleet:
    """What honcho started with our settings. Raises Unavailable if there is no consumer."""
    running: dict[tuple[str, str], list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if command[1:2] == ["-m"] and _is_ours(process, config):
                running[command[2], (command[3:] or [""])[0]].append(process)
        except (psutil.Error, IndexError):
            continue  # it has ended, or belongs to another user
    names = sorted(name for module, name in running if module == TOTALS)
    if not names:
        raise Unavailable(
            f"no fleet runs on {config.data_dir.absolute()}: `make fleet` starts one,"
            " in another terminal; a fleet with other settings needs the same ones here"
        )
    modules = {module for module, _ in running}
    return RunningFleet(
        consumers=[RunningConsumer(name, running[TOTALS, name]) for name in names],
        sessions=frozenset(name for key in running if (name := _session(*key))),
        runs_a_rollup=ROLLUP in modules,
        delivers_receipts=RECEIPTS in modules,
        simulators=[p for key, found in running.items() if key[0] == SIMULATOR for p in found],
    )


def _session(module: str, argument: str) -> str:
    """What a process calls its session with Postgres; empty where it keeps none for long."""
    match module:
        case "streamer":
            return sessions.STREAMER
        case "consumers.rollup":
            return sessions.ROLLUP
        case "consumers":
            return sessions.consumer(argument)
        case "consumers.receipts":
            return sessions.receipts(argument)
    return ""


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
