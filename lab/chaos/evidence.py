"""The evidence of a run: all that the judge of the books looks at."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

import psycopg

from lab.chaos.deliveries import Delivery
from lab.chaos.journal import Ask, Restore
from lab.chaos.nights import Night
from lab.chaos.service import Exit

RIDES = "SELECT id, distance, created_at FROM rides ORDER BY id"
KEYS = "SELECT key, ride_id FROM idempotency_keys"
OUTCOMES = "SELECT ride_id, outcome FROM receipts"


@dataclass
class FinalState:
    """What the database says at the end. Distances are in metres."""

    rides: dict[int, Decimal]
    times: dict[int, datetime]  # when each ride was taken
    keys: dict[str, int]  # the ride that each key belongs to
    outcomes: dict[int, str | None]  # of the receipts, by ride


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
    nights: list[Night] = field(default_factory=list)  # all runs of the job
    last_nights: list[Night] = field(default_factory=list)  # those after all faults
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
        )
