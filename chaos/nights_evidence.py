"""What is known of the nightly job once a run is over: what it said, and what it did."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import psycopg

from chaos.drifts import Drift, Final, Look
from chaos.nights import Night

# Where the reconciliation that asked for it had found the total, and with how many metres too much.
RESETS = """
    SELECT consumer_name, compared.drift, compared.last_ride_id, from_ride_id
    FROM resets JOIN reconciliations ON reconciliations.id = reconciliation_id
    LEFT JOIN LATERAL jsonb_to_recordset(reconciliations.compared -> 'consumers')
        AS compared (name text, drift numeric, last_ride_id bigint) ON name = consumer_name
    ORDER BY resets.id
"""


class Reset(NamedTuple):
    """What a run asked for; `from_ride_id` is where it was applied, if it was."""

    consumer: str
    drift: Decimal
    frozen_at: int  # ride
    from_ride_id: int | None = None


@dataclass
class NightsEvidence:
    """What the runs, the looks at the drifts, Postgres and the warehouse say."""

    nights: list[Night]
    made: list[Drift] = field(default_factory=list)  # or tried
    looks: list[Look] = field(default_factory=list)
    last: list[Night] = field(default_factory=list)  # of the nights, those after all faults
    final: list[Final] = field(default_factory=list)
    resets: list[Reset] = field(default_factory=list)
    # The warehouse's rides, in metres; None if there is no warehouse, as when no run could be.
    table: dict[int, Decimal] | None = None
    repeated: list[int] = field(default_factory=list)  # rides that it has more than once


def read_resets(connection: psycopg.Connection) -> list[Reset]:
    """All that were asked for, in that order. Raises psycopg.Error."""
    return [Reset(*row) for row in connection.execute(RESETS)]


def read_warehouse(folder: Path) -> Iterable[tuple[int, Decimal]]:
    """Every ride in it, with its distance in metres, as delta-rs and Arrow read the table."""
    from deltalake import DeltaTable  # a fleet does without

    rides = DeltaTable(str(folder / "rides")).to_pyarrow_table(columns=["id", "distance"])
    return zip(rides["id"].to_pylist(), rides["distance"].to_pylist(), strict=True)
