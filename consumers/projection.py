"""A projection: what one kind of consumer makes of the rides."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, LiteralString

import psycopg

from consumers.checkpoint import Position
from consumers.round import Healed
from rocket_rides.log import Record


class Projection(ABC):
    """What the consumer `name` makes of the rides. It is given each one once, in order.

    The reader calls it inside its own transactions: what it writes on `connection` commits together
    with the checkpoint, or not at all. An error ends the reader and its projection; the next ones
    load what was committed. `str()` describes the state to a person.
    """

    # What sort of consumer this is: a name is unique among those of its kind.
    KIND: ClassVar[str]
    # An SQL condition on %(name)s: has somebody asked for a repair? Evaluated in every round.
    REPAIR_IS_DUE: ClassVar[LiteralString] = "false"

    def __init__(self, connection: psycopg.Connection, name: str) -> None:
        self.connection = connection
        self.name = name

    def __str__(self) -> str:
        return type(self).__name__

    def begin(self) -> None:  # noqa: B027 (many need none)
        """Create the state for a new checkpoint, in the transaction that creates the checkpoint."""

    @abstractmethod
    def load(self, at: Position) -> None:
        """Load the state, for a checkpoint that stands `at`.

        Raises Unavailable when there is none: it was deleted. Then nothing is counted, and the
        checkpoint does not move.
        """

    @abstractmethod
    def count(self, news: Sequence[Record | Healed]) -> None:
        """Take in new rides: one for each record, any number for a gap that was healed.

        Called whenever the checkpoint moves, also without news. Raises Overtaken when the state is
        gone: the checkpoint must not move without it.
        """

    def repair(self) -> object:
        """Do what was asked for, with the checkpoint locked; returns what to report about it."""
        raise NotImplementedError
