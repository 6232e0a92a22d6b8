"""The settings of the library's processes from the environment, each checked once, at start."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import psycopg

from unified_log import durations, process, schema, urls
from unified_log.errors import Refused

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


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
        return self.redis_url or _missing(
            "REDIS_URL", "redis://, rediss://, unix:// or redis+sentinel://"
        )

    def begin_logging(self) -> None:
        process.log_to_stdout(self.log_level)

    def require_schema(self, connection: psycopg.Connection) -> None:
        schema.require(connection)

    def why_absent(self, url: str) -> str:
        return ""


def read() -> tuple[FromEnvironment, list[str]]:
    """The settings, and a line for each variable that is refused; those are as if not set."""
    values: dict[str, Any] = {}
    refusals = []
    for name, parse in PARSED.items():
        if given := os.environ.get(name):
            try:
                values[name.lower()] = parse(given)
            except ValueError as why:
                shown = "" if name.endswith("_URL") else f"={given}"  # which may hold a password
                refusals.append(f"{name}{shown} is refused: {why}")
    return FromEnvironment(**values), refusals


def _missing(name: str, schemes: str) -> NoReturn:
    raise Refused(f"{name} is not set: a URL is expected that begins with {schemes}")


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
