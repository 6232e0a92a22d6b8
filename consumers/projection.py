"""A projection: what one kind of consumer makes of the rides."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, LiteralString

import psycopg

from consumers.checkpoint import Position
from consumers.round import Healed
from rocket_rides.log import Record


class Projection(ABC):
    """What the consumer `name` makes of the rides, each of which it is given once, in order.

    A reader calls it inside its own transactions, on `connection`: what it writes there moves
    together with the checkpoint, or not at all. After an error the reader ends, and its projection
    with it; the next one loads again what was committed. `str()` tells a person where it stands.
    """

    # A condition in SQL, of %(name)s: whether somebody asks for a repair. Looked at in every round.
    REPAIR_IS_DUE: ClassVar[LiteralString] = "false"

    def __init__(self, connection: psycopg.Connection, name: str) -> None:
        self.connection = connection
        self.name = name

    def begin(self) -> None:  # noqa: B027 (many need none)
        """Make the state that belongs to a new checkpoint, in the transaction that makes it."""

    def load(self, at: Position) -> None:  # noqa: B027
        """Read the state, for a checkpoint that is at `at`. Raises Unavailable when it is gone."""

    @abstractmethod
    def count(self, news: Sequence[Record | Healed]) -> None:
        """Take in the rides that are new. In a gap, which `rides` has healed, are several."""

    def repair(self) -> object:
        """Do what is asked for, with the checkpoint locked; returns what was done, to be told."""
        raise NotImplementedError
