"""Everything that is known after a run; the checker looks at nothing else."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

import psycopg

from lab.chaos.accounts import Account
from lab.chaos.counts import FinalCounts
from lab.chaos.deliveries import Delivery
from lab.chaos.derived import FinalReceipts, FinalRollup
from lab.chaos.journal import Ask
from lab.chaos.nights_evidence import NightsEvidence
from lab.chaos.restore import Restore
from lab.chaos.service import Exit
from rocket_rides.log import Record
from rocket_rides.terms import LAST_SENT

RIDES = "SELECT id, distance, created_at FROM rides ORDER BY id"
KEYS = "SELECT key, ride_id FROM idempotency_keys"
STAGED = "SELECT id FROM staged_log_records ORDER BY id"
# Which entries are true, from the database alone and without the product's code.
TERMS = """
    WITH drawn AS (SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS id FROM log_position)
    SELECT term, after, coalesce(lead(after) OVER (ORDER BY after), (SELECT id FROM drawn))
    FROM terms
    UNION ALL SELECT unnest(void), after, after FROM terms
    UNION ALL SELECT '', 0, coalesce((SELECT min(after) FROM terms), (SELECT id FROM drawn))
"""
STANDINGS = """
    SELECT name, last_ride_id, total_distance, unbelieved_entries
    FROM checkpoints JOIN consumer_states USING (kind, name) ORDER BY name
"""
DEAD_LETTERS = (
    "SELECT consumer_name || ' set aside ' || redis_id || ': ' || reason FROM dead_letters"
)


class FinalStanding(NamedTuple):
    """Where a consumer stands; `total` is in metres."""

    last_ride: int
    total: Decimal
    unbelieved: int = 0  # entries


class Told(NamedTuple):
    """An entry of the log, and when it was read, on the monotonic clock."""

    record: Record
    at: float


@dataclass
class FinalState:
    """What the database says at the end. Distances are in metres."""

    rides: dict[int, Decimal]
    times: dict[int, datetime]  # when each ride was taken
    keys: dict[str, int | None]  # the ride that each key belongs to
    staged: list[int]
    last_sent: int
    consumers: dict[str, FinalStanding]
    dead_letters: list[str]
    # By term: an entry is true if it is about a ride with `after < id <= upto`.
    terms: dict[bytes, tuple[int, int]]


@dataclass
class Reading:
    """The log's records in its order, from its beginning on.

    So many of them were `found` in a log that may be another one than was read before: Redis was
    restarted, or a replica promoted.
    """

    records: list[Record] = field(default_factory=list)
    found: int = 0


@dataclass
class Evidence:
    """What the clients, the database, an onlooker and the processes say."""

    asks: list[Ask]
    final: FinalState
    told: list[Told]  # the log's entries, including re-sends, as they were first seen
    exits: list[Exit] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)  # one after the other; or else `told`
    errors: list[str] = field(default_factory=list)  # each a sentence
    names: tuple[str, ...] = ()  # of the consumers that must exist
    restores: list[Restore] = field(default_factory=list)
    # Until a synchronous standby was promoted, the primary waited for it, and answered nothing.
    in_vain: list[Restore] = field(default_factory=list)
    foreign: set[Record] = field(default_factory=set)  # what strangers wrote or tried to
    blamed: list[str] = field(default_factory=list)  # lines that suspect another database
    # Whether the run's faults can make consumers read entries again, or leave entries unread.
    read_again: bool = False
    left_unread: bool = False
    keeps_log: bool = False  # no fault of the run can keep an entry from a reader
    # None where there was none.
    rollup: FinalRollup | None = None
    receipts: FinalReceipts | None = None
    deliveries: list[Delivery] = field(default_factory=list)
    counts: FinalCounts | None = None
    nights: NightsEvidence | None = None
    accounts: dict[tuple[str, str], Account] = field(default_factory=dict)  # by kind and name
    batch_size: int = 0  # entries that a reader takes at once


def read_final_state(connection: psycopg.Connection) -> FinalState:
    """Read the database, in one snapshot."""
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        query = connection.execute
        [(last_sent,)] = query(LAST_SENT)
        rides = query(RIDES).fetchall()
        return FinalState(
            rides={ride: distance for ride, distance, _ in rides},
            times={ride: taken for ride, _, taken in rides},
            keys=dict(query(KEYS).fetchall()),
            staged=[row[0] for row in query(STAGED)],
            last_sent=last_sent,
            consumers={name: FinalStanding(*rest) for name, *rest in query(STANDINGS)},
            dead_letters=[row[0] for row in query(DEAD_LETTERS)],
            terms={term.encode(): (after, upto) for term, after, upto in query(TERMS)},
        )
