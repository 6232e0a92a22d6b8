"""What the readers, the workers and the streamer have counted, read when a run is over."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

import psycopg

READERS = """
    SELECT kind, name, gaps_healed, rides_healed, distance_healed, resends_skipped,
           crashes_injected, entries_set_aside, resets_applied,
           (SELECT count(*) FROM dead_letters
            WHERE (consumer_kind, consumer_name) = (checkpoints.kind, checkpoints.name)),
           (SELECT count(*) FROM resets WHERE status = 'applied'
            AND (consumer_kind, consumer_name) = (checkpoints.kind, checkpoints.name))
    FROM checkpoints
"""
WORKERS = """
    SELECT coalesce(sum(delivered), 0), coalesce(sum(dead), 0), coalesce(sum(swept), 0)
    FROM receipts_workers
"""
SENT = "SELECT records_sent FROM streamer_state"
ASKED = "SELECT count(*) FROM resets"


class ReaderCounts(NamedTuple):
    """What a reader has counted, and what other tables say of the same; metres in decimals."""

    gaps: int = 0
    rides: int = 0  # in those gaps
    metres: Decimal = Decimal(0)
    skipped: int = 0
    crashes: int = 0
    set_aside: int = 0
    resets: int = 0
    dead_letters: int = 0
    applied: int = 0


@dataclass
class FinalCounts:
    """All counts: the readers' by kind and name, the workers' in sum."""

    readers: dict[tuple[str, str], ReaderCounts] = field(default_factory=dict)
    delivered: int = 0
    dead: int = 0
    sent: int = 0
    swept: int = 0
    resets_asked: int = 0  # by the nightly job


def read_counts(connection: psycopg.Connection) -> FinalCounts:
    """Read them, while nobody works any more. Raises psycopg.Error."""
    [(delivered, dead, swept)] = connection.execute(WORKERS)
    [(sent,)] = connection.execute(SENT)
    [(asked,)] = connection.execute(ASKED)
    readers = {(kind, name): ReaderCounts(*row) for kind, name, *row in connection.execute(READERS)}
    return FinalCounts(readers, delivered, dead, sent, swept, asked)
