"""The evidence of a run: all that the judge of the books looks at."""

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import psycopg

from lab.chaos.receiver import Delivery
from lab.chaos.runs import Run
from lab.chaos.service import Exit
from rocket_rides.cells import CELL_SIZE

RIDES = "SELECT id, distance, created_at FROM rides ORDER BY id"
KEYS = "SELECT key, ride_id FROM idempotency_keys"
OUTCOMES = "SELECT ride_id, outcome FROM receipts"
STARS = "SELECT ride_id, stars FROM ratings"
RUNS = "SELECT id, status FROM runs"


class Answer(NamedTuple):
    """A 201, or a commit by a writer; `distance` is in metres, times are monotonic."""

    ride: int
    distance: Decimal
    sent: float = 0.0  # when the answered request was sent, not an earlier one for this ride
    came: float = 0.0


class Rated(NamedTuple):
    """That a ride has so many stars, as a 201 or a 200 says; times are monotonic."""

    ride: int
    stars: int
    sent: float
    came: float


class Restore(NamedTuple):
    """Postgres was killed at `killed` and restored from a backup that began at `began`.

    Of a cell, `killed` is later: when all cells had forgotten the keys of its lost rides. Both are
    on the monotonic clock. A promoted standby counts as a backup that began when it was cut off.
    """

    began: float
    killed: float
    cell: int | None = None  # whose Postgres it is, where there are several

    def is_about(self, answer: Answer | Rated) -> bool:
        return self.cell in (None, answer.ride // CELL_SIZE)

    def may_undo(self, answer: Answer | Rated) -> bool:
        """Whether the old server may have committed what was answered after the backup began.

        One sent later was served by the restored server; one sent earlier by either, whenever its
        answer came: the API may have been stopped between the old server's answer and its own.
        """
        was_under_way = answer.sent < self.killed and answer.came > self.began
        return self.is_about(answer) and was_under_way


@dataclass(slots=True)
class Ask:
    """A ride that somebody asked for. No two have the same distance (metres)."""

    distance: Decimal
    key: str | None = None
    whole: bool = False  # it was sent completely; else its ride must not exist
    given_up: bool = False  # its client hung up, and will not ask again
    asked_at: float = field(default_factory=time.monotonic)
    answers: list[Answer] = field(default_factory=list)
    rated: list[Rated] = field(default_factory=list)


class Journal:
    """All rides that the clients, or the writers, asked for."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.restores: list[Restore] = []  # so far
        self.troubles: list[str] = []  # answers that no client should ever get
        self._guard = threading.Lock()

    def ask(self, client: str | None = None) -> Ask:
        """A new ride to ask for. It has a key where a client of the API asks."""
        with self._guard:
            number = 1 + len(self.asks)
            key = f"{client}-{number}" if client else None
            # A ride without a key is identified by its distance alone.
            ask = Ask(Decimal(number * 1009).scaleb(-3), key)
            self.asks.append(ask)
            return ask


@dataclass
class FinalState:
    """What the database says at the end. Distances are in metres."""

    rides: dict[int, Decimal]
    times: dict[int, datetime]  # when each ride was taken
    keys: dict[str, int]  # the ride that each key belongs to
    outcomes: dict[int, str | None]  # of the receipts, by ride
    stars: dict[int, int]  # of the rides that were rated
    runs: dict[int, str] = field(default_factory=dict)  # the status of each run of the job


@dataclass
class Evidence:
    """What the clients, the database, the onlookers and the processes say."""

    asks: list[Ask]
    final: FinalState
    exits: list[Exit] = field(default_factory=list)
    found: list[str] = field(default_factory=list)  # in tables and logs: each a sentence
    restores: list[Restore] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    settled_at: float = float("inf")  # on the monotonic clock: nothing was left to do
    runs: list[Run] = field(default_factory=list)  # all runs of the job
    last_runs: list[Run] = field(default_factory=list)  # those after all faults
    warehouse: list[tuple[int, Decimal]] | None = None  # rides, and their metres


def read_final_state(connection: psycopg.Connection) -> FinalState:
    """Read the database, in one snapshot."""
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        query = connection.execute
        rides = query(RIDES).fetchall()
        return FinalState(
            rides={ride: distance for ride, distance, _ in rides},
            times={ride: taken for ride, _, taken in rides},
            keys=dict(query(KEYS).fetchall()),
            outcomes=dict(query(OUTCOMES).fetchall()),
            stars=dict(query(STARS).fetchall()),
            runs=dict(query(RUNS).fetchall()),
        )
