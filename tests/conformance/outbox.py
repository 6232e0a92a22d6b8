"""What the suite asks of an implementation."""

from collections.abc import Callable
from typing import Protocol

import psycopg

Event = Callable[[], object]  # of what happens

KINDS = ("letter", "parcel")  # of records, which share one log


def nothing() -> None:
    """What is done meanwhile, by default."""


class Leader(Protocol):
    """A process that moves records from the outbox into the log."""

    def drain(self, before_send: Event = nothing) -> None:
        """Send all that may be sent now, and return; send nothing while another one leads.

        Calls `before_send` between reading records and sending them. Once its session was ended it
        may raise psycopg.Error.
        """


class Outbox(Protocol):
    """An outbox in a Postgres database, with its log, and one consumer that follows the log.

    A record has a *position*, its place in the order, and a *key*, by which the suite knows it. A
    second object on the same servers goes on where the first was, as after a restart.
    """

    def __init__(self, postgres_url: str, redis_url: str, name: str) -> None:
        """Opens what it needs. No other on these servers has this name."""

    def create(self) -> None:
        """Make its tables, in an empty database."""

    def draw(self, connection: psycopg.Connection) -> int:
        """Draw the next position, in the transaction of the connection."""

    def insert(self, connection: psycopg.Connection, position: int, key: int, kind: str) -> None:
        """Insert a record and stage it, in the transaction that drew its position."""

    def leader(self, connection: psycopg.Connection) -> Leader:
        """One that wants to lead, and drains on this connection, which is in autocommit."""

    def read(self) -> list[int]:
        """Let the consumer take all that it may; returns every key that it has taken, in order.

        Its state is in Postgres. The log may hold a record twice; the consumer takes it once.
        """

    def pass_time(self, seconds: float) -> None:
        """Let time pass, for an implementation that looks at a clock."""

    def close(self) -> None:
        """Close its connections."""
