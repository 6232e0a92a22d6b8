"""What is known of the nightly job once a run is over: what it said, and what it did."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import psycopg

from lab.chaos.drifts import Drift, Drifts, Final, Look, read_drifts
from lab.chaos.night_report import Report
from rocket_rides.errors import in_one_line

AGREED, DRIFTED, COULD_NOT_RUN, KILLED, FAILED = (
    "agreed",
    "found drifts",
    "could not run",
    "killed",
    "failed",
)
ENDS_IN_ORDER = (AGREED, DRIFTED, KILLED, COULD_NOT_RUN, FAILED)
# Where the reconciliation that asked for it had found the total, and with how many metres too much.
RESETS = """
    SELECT consumer_name, compared.drift, compared.last_ride_id, from_ride_id
    FROM resets JOIN reconciliations ON reconciliations.id = reconciliation_id
    LEFT JOIN LATERAL jsonb_to_recordset(reconciliations.compared -> 'consumers')
        AS compared (name text, drift numeric, last_ride_id bigint) ON name = consumer_name
    ORDER BY resets.id
"""


@dataclass
class Night:
    """A run: when it began and ended, on the monotonic clock, how, and what it said."""

    number: int
    began: float
    full: bool = False
    ended: float = 0.0
    end: str = ""
    said: str = ""  # on its output
    report: Report | None = None
    before: Look | None = None  # what was there, if Postgres said so
    after: Look | None = None

    def __str__(self) -> str:
        return f"night-{self.number}"

    @property
    def finished(self) -> bool:
        return self.end in (AGREED, DRIFTED)


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
    table: dict[int, Decimal] = field(default_factory=dict)  # the warehouse's rides, in metres
    unreadable: str = ""  # why there is none
    repeated: list[int] = field(default_factory=list)  # rides that it has more than once


def read_nights(
    connection: psycopg.Connection, nights: list[Night], drifts: Drifts, last: list[Night]
) -> NightsEvidence:
    """Collect it, when all runs are over. Raises psycopg.Error."""
    found = NightsEvidence(nights, [*drifts.made.values()], drifts.looks, last)
    found.final = read_drifts(connection)
    found.resets = [Reset(*row) for row in connection.execute(RESETS)]
    try:
        rides = [*read_warehouse(drifts.fleet.warehouse_dir)]
    except Exception as error:  # whatever the library raises
        found.unreadable = in_one_line(error)
        return found
    found.table = dict(rides)
    found.repeated = [ride for ride, times in Counter(r for r, _ in rides).items() if times > 1]
    return found


def read_warehouse(folder: Path) -> Iterator[tuple[int, Decimal]]:
    """Every ride in it, with its distance in metres, as delta-rs and Arrow read the table."""
    from deltalake import DeltaTable  # a fleet does without

    rides = DeltaTable(str(folder / "rides")).to_pyarrow_table(columns=["id", "distance"])
    return zip(rides["id"].to_pylist(), rides["distance"].to_pylist(), strict=True)
