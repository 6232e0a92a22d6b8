"""What the library's processes have to be told, and reading it from the environment.

An application that has settings of its own names the function that loads them, as in

    UNIFIED_LOG_SETTINGS=shop.settings:load

and they are what this package's commands use. Else each setting is an environment variable.
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, Protocol

import psycopg

from unified_log import durations, process, schema, urls
from unified_log.errors import Refused, in_one_line

HOOK = "UNIFIED_LOG_SETTINGS"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


class Settings(Protocol):
    """What the library's processes need; an application's own settings may have more."""

    @property
    def postgres_url(self) -> str:
        """Of Postgres, or of a pooler in session mode. Raises Refused where there is none."""

    @property
    def log_url(self) -> str:
        """Of Redis. Raises Refused where there is none."""

    @property
    def stream_name(self) -> str:
        """The Redis stream that is the log; each database needs its own."""

    @property
    def batch_size(self) -> int:
        """Records sent or read at a time, up to 2000."""

    @property
    def stream_max_length(self) -> int:
        """Entries kept for a reader that does not come back."""

    @property
    def stream_max_age(self) -> float:
        """Seconds for which they are kept, by Redis' clock."""

    @property
    def log_replicas(self) -> int:
        """Replicas of Redis that must have a batch before it is committed as sent."""

    @property
    def leader_timeout(self) -> float:
        """Seconds until the server disconnects a leader that hangs."""

    def begin_logging(self) -> None:
        """Have this process log to stdout."""

    def require_schema(self, connection: psycopg.Connection) -> None:
        """Raise Unavailable, or Refused, unless the database is the one that this code needs."""

    def why_absent(self, url: str) -> str:
        """A sentence for a person, where it is known why nobody answers at this URL; else empty."""


@dataclass(frozen=True)
class FromEnvironment:
    """The settings, each by an environment variable of its name."""

    database_url: str = ""
    redis_url: str = ""
    stream_name: str = "unified-log"
    batch_size: int = 2000
    stream_max_length: int = 1_000_000
    stream_max_age: float = durations.seconds("7d")
    log_replicas: int = 0
    leader_timeout: float = 10.0
    log_level: str = "INFO"

    @property
    def postgres_url(self) -> str:
        return self.database_url or _missing("DATABASE_URL", "postgresql://")

    @property
    def log_url(self) -> str:
        return self.redis_url or _missing("REDIS_URL", "redis://, rediss:// or unix://")

    def begin_logging(self) -> None:
        process.log_to_stdout(self.log_level)

    def require_schema(self, connection: psycopg.Connection) -> None:
        schema.require(connection)

    def why_absent(self, url: str) -> str:
        return ""


def load() -> Settings:
    """The application's settings, or those of the environment.

    Ends the process, with status 2, with one clear line for each bad variable.
    """
    if named := os.environ.get(HOOK):
        return _of_the_application(named)
    values: dict[str, Any] = {}
    refusals = []
    for name, parse in PARSED.items():
        if given := os.environ.get(name):
            try:
                values[name.lower()] = parse(given)
            except ValueError as why:
                shown = "" if name.endswith("_URL") else f"={given}"  # which may hold a password
                refusals.append(f"{name}{shown} is refused: {why}")
    if refusals:
        _refuse(refusals)
    return FromEnvironment(**values)


def _of_the_application(named: str) -> Settings:
    module, _, function = named.partition(":")
    try:
        loads: Callable[[], Settings] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as why:
        _refuse([f"{HOOK}={named} is refused: module:function is expected ({in_one_line(why)})"])
    return loads()


def _missing(name: str, schemes: str) -> NoReturn:
    raise Refused(f"{name} is not set: a URL is expected that begins with {schemes}")


def _refuse(reasons: Iterable[str]) -> NoReturn:
    for reason in reasons:
        print(reason, file=sys.stderr)  # noqa: T201
    raise SystemExit(2)


def _between(parse: Callable[[str], float], least: float, most: float, text: str) -> float:
    """Raises ValueError, also for what is not finite."""
    try:
        value = parse(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise ValueError(f"a number from {least:,} to {most:,} is expected")
    return value


def _age(text: str) -> float:
    if (age := durations.seconds(text)) < 1:
        raise ValueError("it must be at least a second")
    return age


def _stream(text: str) -> str:
    if len(text) > 200:
        raise ValueError("it has more than 200 characters")
    return text


def _level(text: str) -> str:
    if text.upper() not in LEVELS:
        raise ValueError(f"one of {', '.join(LEVELS)} is expected")
    return text.upper()


PARSED: dict[str, Callable[[str], object]] = {
    "DATABASE_URL": urls.postgres,
    "REDIS_URL": urls.redis,
    "STREAM_NAME": _stream,
    "BATCH_SIZE": partial(_between, int, 1, 2000),
    "STREAM_MAX_LENGTH": partial(_between, int, 1000, 2**63 - 1),
    "STREAM_MAX_AGE": _age,
    "LOG_REPLICAS": partial(_between, int, 0, 10),
    "LEADER_TIMEOUT": partial(_between, float, 1, 3600),
    "LOG_LEVEL": _level,
}
