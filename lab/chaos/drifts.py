"""The drifts that the nemesis makes for the nightly job to find, and what Postgres says of each.

A drift and its row in `chaos.drifts` are committed together. So a restore, or a fail-over with
loss, that undoes a drift forgets its row, too, and one that brings a repaired drift back brings its
row back. Whether a drift is there is always asked, in one snapshot, never concluded:

* of a total: as many resets were applied to it as when a millimetre was added;
* of a minute: its row still carries the figures that the nemesis gave it. The rollup may compute
  it anew by itself, since a ride may come late;
* of an outcome: its ride has none.

None is made on a victim that has one. So no two of them ever add up.
"""

import random
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple
from uuid import uuid4

import psycopg

from lab.chaos.drift_statements import (
    FINAL,
    LOOK,
    LOST_OUTCOME,
    PROVED,
    SCHEMA,
    TABLE,
    VIEW,
    WRONG_MINUTE,
    WRONG_TOTAL,
)
from lab.chaos.fleet import CONSUMERS, Fleet
from rocket_rides.database import one_row
from rocket_rides.errors import Unavailable

TOTAL, MINUTE, OUTCOME = "total", "minute", "outcome"
MILLIMETRE = Decimal("0.001")
ANY_OUTCOME = 0.25  # how often it is one that a night has looked at before
NEVER = float("inf")
# What Postgres says while it is down, goes down, or starts. Anything else is a mistake of ours.
AWAY = (psycopg.OperationalError, psycopg.InternalError, Unavailable)


@dataclass
class Drift:
    """One that the nemesis made, or tried to. Times are monotonic.

    Whoever lost the answer to its commit can't know whether there ever was one.
    """

    token: str
    kind: str
    victim: str
    mark: str
    tried: float  # not there before
    settled: float = NEVER  # from here on, a look shows whether it is

    def __str__(self) -> str:
        return f"the drift of the {self.kind} {self.victim}"


def figures(mark: str) -> tuple[int, Decimal]:
    """The rides and the metres of a minute, without its label."""
    rides, distance, _ = mark.split("/")
    return int(rides), Decimal(distance)


class Proved(NamedTuple):
    """Up to which rides the minutes, and the receipts, were proved."""

    minutes: int = 0
    receipts: int = 0


NOTHING = Proved()


class Look(NamedTuple):
    """Which drifts were there at some moment between the two, which are monotonic."""

    asked: float
    answered: float
    there: frozenset[str]  # tokens
    due: frozenset[str]  # of those, the ones that a night which has ended had to come across
    proved: Proved


class Final(NamedTuple):
    """A drift as Postgres knows it in the end."""

    kind: str
    victim: str
    mark: str
    last_ride_id: int = 0
    is_there: bool = False


@dataclass
class Drifts:
    """All that were made in the database of `fleet`, and all looks at them."""

    fleet: Fleet
    made: dict[str, Drift] = field(default_factory=dict)  # by token
    looks: list[Look] = field(default_factory=list)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def prepare(self) -> None:
        """Before there are any. Raises psycopg.Error or Unavailable."""
        with closing(self.fleet.connect()) as connection:
            for statement in (SCHEMA, TABLE, VIEW):
                connection.execute(statement)

    def make(self, kind: str, dice: random.Random) -> Drift | None:
        """Commit one; None if there is no victim. Raises psycopg.Error or Unavailable.

        It is in `made` before it is committed, for the answer may be lost.
        """
        token = uuid4().hex
        values: dict[str, object] = {"token": token, "victim": dice.choice(CONSUMERS)}
        rides = dice.randint(0, 1)
        values |= {"rides": rides, "distance": MILLIMETRE * (1 - rides)}
        looked_at_before = dice.random() < ANY_OUTCOME
        with self._guard, closing(self.fleet.connect()) as connection:
            proved = Proved(*one_row(connection.execute(PROVED)))
            values["after"] = 0 if looked_at_before else proved.receipts
            tried = time.monotonic()
            try:
                with connection.transaction():
                    row = connection.execute(STATEMENTS[kind], values).fetchone()
                    if row is None:
                        return None
                    victim, mark = row
                    self.made[token] = drift = Drift(token, kind, victim, mark, tried)
            finally:
                connection.close()
                if token in self.made:
                    self.made[token].settled = time.monotonic()
        return drift

    def look(
        self,
        after: Proved = NOTHING,
        upto: Proved = NOTHING,
    ) -> Look | None:
        """See which are there, and which are due; None if Postgres does not answer."""
        values = {
            f"{what}_{name}": value
            for name, proved in (("after", after), ("upto", upto))
            for what, value in proved._asdict().items()
        }
        asked = time.monotonic()
        try:
            with closing(self.fleet.connect()) as connection:
                rows = connection.execute(LOOK, values).fetchall()
                proved = Proved(*one_row(connection.execute(PROVED)))
        except AWAY:
            return None
        there = frozenset(token for token, is_there, _ in rows if is_there)
        due = frozenset(token for token, _, is_due in rows if is_due)
        look = Look(asked, time.monotonic(), there, due, proved)
        self.looks.append(look)
        return look


STATEMENTS: Mapping[str, str] = {
    TOTAL: WRONG_TOTAL,
    MINUTE: WRONG_MINUTE,
    OUTCOME: LOST_OUTCOME,
}


def read_drifts(connection: psycopg.Connection) -> list[Final]:
    """All that this database knows of. Raises psycopg.Error."""
    return [Final(*row) for row in connection.execute(FINAL)]
