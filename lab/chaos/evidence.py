"""Everything that is known after a run; the judge of the books looks at nothing else."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import psycopg

from lab.chaos.clocks import Jump, true_moment
from lab.chaos.deliveries import Delivery
from lab.chaos.journal import Ask
from lab.chaos.nights import Night
from lab.chaos.observer import Reading, Told
from lab.chaos.restore import Restore
from lab.chaos.service import Exit
from rocket_rides.log import Record

RIDES = "SELECT id, distance, created_at FROM rides ORDER BY id"
KEYS = "SELECT key, ride_id FROM idempotency_keys"
# Which entries are true, from the database alone and without the product's code.
TERMS = """
    WITH drawn AS (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS id FROM log_position)
    SELECT term, after, coalesce(lead(after) OVER (ORDER BY after), (SELECT id FROM drawn))
    FROM terms
    UNION ALL SELECT unnest(void), after, after FROM terms
    UNION ALL SELECT '', 0, coalesce((SELECT min(after) FROM terms), (SELECT id FROM drawn))
"""
HEALED = """
    SELECT name, unbelieved_entries, total_distance,
           gaps_healed, rides_healed, resends_skipped, crashes_injected
    FROM checkpoints JOIN consumer_states USING (kind, name) ORDER BY name
"""
RECEIPTS = """
    SELECT ride_id, outcome, extract(epoch FROM clock_timestamp() - decided_at)::float8
    FROM receipts
"""


class Healed(NamedTuple):
    """What a total has coped with."""

    gaps: int
    rides: int  # in those gaps
    skipped: int  # entries that were sent again
    crashes: int  # injected


class FinalReceipt(NamedTuple):
    """What became of a ride's receipt (None: nothing yet), and when, on the monotonic clock."""

    outcome: str | None
    decided: float | None


@dataclass
class FinalState:
    """What the database says at the end. Distances are in metres."""

    rides: dict[int, Decimal]
    times: dict[int, datetime]  # when each ride was taken
    keys: dict[str, int]  # the ride that each key belongs to
    # By term: an entry is true if it is about a ride with `after < id <= upto`.
    terms: dict[bytes, tuple[int, int]]
    totals: dict[str, Decimal]
    unbelieved: dict[str, int]  # entries, by total
    healed: dict[str, Healed]  # by total


@dataclass
class NightsEvidence:
    """The nightly job's runs, those after all faults, and what they left in the warehouse."""

    all: list[Night] = field(default_factory=list)
    last: list[Night] = field(default_factory=list)
    warehouse: list[tuple[int, Decimal]] | None = None  # rides, and their metres


@dataclass
class Evidence:
    """What the clients, the database, the onlookers and the processes say."""

    asks: list[Ask]
    final: FinalState
    told: list[Told]  # the log's entries, including re-sends, as they were first seen
    exits: list[Exit] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)  # one after the other; or else `told`
    errors: list[str] = field(default_factory=list)  # each a sentence
    tables: list[str] = field(default_factory=list)  # what was found in them, each a sentence
    restores: list[Restore] = field(default_factory=list)
    # Until a synchronous standby was promoted, the primary waited for it, and answered nothing.
    in_vain: list[Restore] = field(default_factory=list)
    foreign: set[Record] = field(default_factory=set)  # what strangers wrote or tried to
    blamed: list[str] = field(default_factory=list)  # lines that suspect another database
    # Whether the run's faults can make consumers read entries again, or leave entries unread.
    read_again: bool = False
    left_unread: bool = False
    keeps_log: bool = False  # no fault of the run can keep an entry from a reader
    receipts: dict[int, FinalReceipt] = field(default_factory=dict)  # by ride
    lost_outcomes: set[int] = field(default_factory=set)  # rides; the nemesis has deleted them
    deliveries: list[Delivery] = field(default_factory=list)
    nights: NightsEvidence = field(default_factory=NightsEvidence)


def read_final_state(connection: psycopg.Connection) -> FinalState:
    """Read the database, in one snapshot."""
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        query = connection.execute
        rides, totals = query(RIDES).fetchall(), query(HEALED).fetchall()
        return FinalState(
            rides={ride: distance for ride, distance, _ in rides},
            times={ride: taken for ride, _, taken in rides},
            keys=dict(query(KEYS).fetchall()),
            terms={term.encode(): (after, upto) for term, after, upto in query(TERMS)},
            totals={name: total for name, _, total, *_ in totals},
            unbelieved={name: unbelieved for name, unbelieved, *_ in totals},
            healed={name: Healed(*healed) for name, _, _, *healed in totals},
        )


def read_receipts(
    connection: psycopg.Connection, jumps: Iterable[Jump] = ()
) -> dict[int, FinalReceipt]:
    """What became of the receipts, by ride. Raises psycopg.Error."""
    rows = connection.execute(RECEIPTS).fetchall()
    now = time.monotonic()
    return {
        ride: FinalReceipt(outcome, None if ago is None else true_moment(now - ago, jumps))
        for ride, outcome, ago in rows
    }
