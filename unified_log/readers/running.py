"""Running a reader as a process: round after round, despite crashes and lost servers."""

import argparse
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeVar

import psycopg
import redis

from unified_log import database, process, session_settings, sessions, settings
from unified_log.faults import crashing
from unified_log.log import Log
from unified_log.readers.crashes import Crashes
from unified_log.readers.declared import NAME_LENGTH, is_name, require_handler, warn_of_types
from unified_log.readers.limit import Limit
from unified_log.readers.reader import H, Reader
from unified_log.readers.report import Report, with_state
from unified_log.readers.round import Round, RoundStep
from unified_log.waiting import LimitedWarning, Progress, delays

IDLE_ROUND = 0.5  # seconds
HELD_POLL = 0.0005  # seconds; the streamer commits right after it has sent
TIMEOUT = "10s"


class Work(Protocol):
    """What is done in rounds."""

    def run_once(self, *, wait: float) -> Round:
        """Do one round; wait up to `wait` seconds for something to do."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next round, without looking for anything to do."""

    @property
    def works(self) -> bool:
        """Whether its rounds have shown that all of it works."""


W = TypeVar("W", bound=Work)
Observer = Callable[[Round, W], None]


def run(
    name: str,
    handler: type[H],
    observers: Sequence[Observer[Reader[H]]],
    config: settings.Settings,
    stop: process.Stop,
    crash_rate: float = 0,
) -> None:
    """Read the log until `stop`, with a new handler for each session with the servers.

    Each observer is called after each round that was committed. At the given rate a round crashes
    halfway, on purpose. Ends the process, with status 2, where `handler` can't be one.
    """
    require_handler(handler)
    crashes, limit = Crashes(), Limit(config.batch_size)
    is_new = True

    def session(progress: Progress) -> None:
        nonlocal is_new
        with (
            database.connect(
                config.postgres_url,
                sessions.starting(sessions.reader(handler.KIND, name)),
                lock_timeout=TIMEOUT,
                idle_in_transaction_session_timeout=TIMEOUT,
                **session_settings.INDEX_SCANS,
            ) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            config.require_schema(connection)
            database.require_writable(connection)
            reader = Reader(log, handler(connection, name), limit=limit)
            if is_new:
                warn_of_types(connection, name, handler.TYPES)
                is_new = False
            crashes.settle(reader.checkpoint)
            state = with_state(reader.handler)
            progress.announce(f"{name} stands at {reader.at.position}{state}")
            with crashes.noted():
                rounds(reader, observers, connection, progress, stop, crash_rate)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


def rounds(
    work: W,
    observers: Sequence[Observer[W]],
    connection: psycopg.Connection,
    progress: Progress,
    stop: process.Stop,
    crash_rate: float,
    crash_steps: Sequence[Enum] = (RoundStep.BEFORE_COMMIT,),
) -> None:
    """One round after another until `stop`, while nothing fails.

    While the log is ahead of what the streamer has committed, the pauses between rounds grow.
    """
    pauses, warn = delays(HELD_POLL, IDLE_ROUND), LimitedWarning(1)
    while not stop:
        with crashing(crash_rate, *crash_steps):
            done = work.run_once(wait=IDLE_ROUND)
        if work.works:
            progress.made()
            sessions.at_work(connection)
        for observer in observers:
            observer(done, work)
        pause = work.pause
        if done.held:
            warn("the log is ahead of what the streamer has committed")
            pause = max(pause, next(pauses))
        else:
            pauses, warn = delays(HELD_POLL, IDLE_ROUND), LimitedWarning(1)
        if pause:
            stop.wait(pause)


def program() -> str:
    """The module that was run, such as `shop.takings`."""
    spec = sys.modules["__main__"].__spec__
    return spec.name.removesuffix(".__main__") if spec else Path(sys.argv[0]).stem


def parse_name(program: str, description: str | None) -> str:
    """The consumer's name from the command line."""
    parser = process.Parser(f"python -m {program}", description)
    parser.add_argument("name", type=consumer_name, help="the consumer's name")
    name: str = parser.parse_args().name
    return name


def consumer_name(name: str) -> str:
    """Check a consumer's name. Raises argparse.ArgumentTypeError."""
    if not is_name(name):
        raise argparse.ArgumentTypeError(
            f"a consumer's name has 1 to {NAME_LENGTH} printable characters"
        )
    return name


def main(handler: type[H], description: str | None) -> None:
    """Be `python -m MODULE NAME`, a consumer with this handler, until SIGTERM or SIGINT."""
    name = parse_name(program(), description)
    config = settings.load()
    config.begin_logging()
    run(name, handler, [Report(name)], config, process.Stop().on_signals())
