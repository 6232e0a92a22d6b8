"""Finds unexpected lines in the fleet's logs: every line that is not a usual one is a finding."""

import re
from collections.abc import Iterator
from pathlib import Path

from lab.chaos.service import ENDED, Service, Services

# A usual line. Anything else is unexpected: an ERROR, a traceback, a message of a library.
# The API's first line is one, and what our own supervisor says.
USUAL = re.compile(rf"\d\d:\d\d:\d\d ((DEBUG|INFO|WARNING) |Listening on http|{ENDED})")
# The API's server logs this for a worker that was killed, and starts another. One line is allowed
# for each worker that the nemesis ended, and no more.
WORKER_ENDED = re.compile(r"Unexpected exit from worker-\d")
# Postgres also panics, and recovers, when its WAL does not fit on a full disk.
SERVER_BROKEN = re.compile(
    r"PANIC:(?!.*No space left on device)|REDIS BUG REPORT|Bad file format|Short read"
)


def said(services: Services) -> list[str]:
    """What they should never have printed."""
    found = {name: unexpected(service) for name, service in services.items()}
    return [f"{name} said: {line}" for name, lines in found.items() for line in lines]


def unexpected(service: Service) -> list[str]:
    unusual = [line for line in lines(service.log) if not USUAL.match(line)]
    workers = [line for line in unusual if WORKER_ENDED.search(line)]
    others = [line for line in unusual if not WORKER_ENDED.search(line)]
    return others + workers[service.workers_ended :]


def broken(log: Path) -> list[str]:
    """The lines in which a server says that its data is damaged."""
    return [line for line in lines(log) if SERVER_BROKEN.search(line)]


def lines(log: Path) -> Iterator[str]:
    if log.exists():
        with log.open(errors="replace") as text:
            for line in text:
                yield line.rstrip("\n")
