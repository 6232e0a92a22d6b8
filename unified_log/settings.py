"""What the library's processes have to be told.

An application that has settings of its own names the function that loads them, as in

    UNIFIED_LOG_SETTINGS=shop.settings:load

and they are what this package's commands use. Else each setting is an environment variable
(`unified_log.environment`).
"""

import importlib
import os
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn, Protocol

import psycopg

from unified_log import environment
from unified_log.errors import in_one_line

HOOK = "UNIFIED_LOG_SETTINGS"


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


def load() -> Settings:
    """The application's settings, or those of the environment.

    Ends the process, with status 2, with one clear line for each bad variable.
    """
    if named := os.environ.get(HOOK):
        return _of_the_application(named)
    config, refusals = environment.read()
    if refusals:
        refuse(refusals)
    return config


def _of_the_application(named: str) -> Settings:
    module, _, function = named.partition(":")
    try:
        loads: Callable[[], Settings] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as why:
        refuse([f"{HOOK}={named} is refused: module:function is expected ({in_one_line(why)})"])
    return loads()


def refuse(reasons: Iterable[str]) -> NoReturn:
    """End the process, with status 2 and a line for each reason."""
    for reason in reasons:
        print(reason, file=sys.stderr)  # noqa: T201
    raise SystemExit(2)
