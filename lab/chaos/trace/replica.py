"""The state of the database as recorded so far, in one life of it.

Rides that were sent are settled, so no lower id comes later: running sums over them give the
distance, and the number, between any two at once. Distances are millimetres.
"""

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from lab.chaos.drifts import TOTAL
from lab.chaos.trace.pgoutput import Row
from lab.chaos.trace.recording import Life
from lab.chaos.trace.specified import Ride, Terms, Total, require


class Met(NamedTuple):
    gaps: int = 0  # by a total, as the rest
    rides: int = 0  # in those gaps
    distance: int = 0  # of those rides
    skipped: int = 0  # entries that were sent again
    ignored: int = 0  # entries

    def since(self, before: "Met") -> "Met":
        return Met(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass
class Replica:
    began: float = 0.0  # the life
    last_sent: int = 0
    terms: Terms = ()
    drawn: int = 0  # at least
    rides: dict[int, int] = field(default_factory=dict)  # distances; 0 of records of other kinds
    staged: set[Ride] = field(default_factory=set)
    sent: list[int] = field(default_factory=list)  # rides, sorted
    sums: list[int] = field(default_factory=lambda: [0])  # of the first n records sent
    counts: list[int] = field(default_factory=lambda: [0])  # of rides among these
    totals: dict[str, Total] = field(default_factory=dict)
    met: dict[str, Met] = field(default_factory=dict)  # by total
    moved: dict[str, float] = field(default_factory=dict)  # by total: when it last did
    drifts: dict[str, int] = field(default_factory=dict)  # by total: what the nemesis added
    held: dict[str, set[int]] = field(default_factory=dict)  # by total: the rides it holds out

    def take(self, ride: Ride) -> None:
        self.rides[ride.id] = ride.distance
        self.drawn = max(self.drawn, ride.id)

    def send(self, rides: Iterable[int], upto: int) -> None:
        """Note that these rides were sent, in order; last_sent is the last of them."""
        for ride in rides:
            self.sent.append(ride)
            self.sums.append(self.sums[-1] + self.rides[ride])
            self.counts.append(self.counts[-1] + (self.rides[ride] > 0))
        self.last_sent = upto

    def sent_between(self, after: int, upto: int) -> list[int]:
        return self.sent[bisect_right(self.sent, after) : bisect_right(self.sent, upto)]

    def require_sum(self, name: str, total: Total, rule: str) -> None:
        """It is the exact sum, less what it holds out, and its drift. Raises NotAllowed."""
        held = sum(self.rides[one] for one in self.held.get(name, ()))
        exact = self.sums[bisect_right(self.sent, total.ride_id)] - held
        require(total.distance == exact + self.drifts.get(name, 0), rule)

    def require_count(self, name: str, total: Total, state: Row) -> None:
        """Its state counts as many rides. Raises NotAllowed."""
        rides = self.counts[bisect_right(self.sent, total.ride_id)] - len(self.held.get(name, ()))
        require(number(state, "rides") == rides, "a total counts its rides")


def opened(life: Life) -> Replica:
    """The replica at the beginning of a life, which must be right. Raises NotAllowed."""
    replica, rows = Replica(life.at), life.tables
    for row in (*rows["rides"], *rows["ratings"], *rows["notes"]):
        replica.take(taken(row))
    replica.staged.update(map(staged, rows["staged_log_records"]))
    [state] = rows["streamer_state"]
    last_sent = number(state, "last_sent_id")
    replica.send(sorted(ride for ride in replica.rides if ride <= last_sent), last_sent)
    unsent = {*replica.rides} - {*replica.sent}
    require({ride.id for ride in replica.staged} == unsent, "a ride has its record until sent")
    replica.terms = tuple(sorted(map(term_of, rows["terms"])))
    drifts = {(row["kind"], row["victim"], row["mark"]) for row in rows["drifts"]}
    for row in rows["held_out_records"]:
        if row["kind"] == TOTAL:
            replica.held.setdefault(text(row, "name"), set()).add(number(row, "position"))
    states = {row["name"]: row for row in rows["consumer_states"]}
    for row in rows["checkpoints"]:
        if row["kind"] == "total":
            name = text(row, "name")
            replica.drifts[name] = int((TOTAL, name, row["resets_applied"]) in drifts)
            state = states[name]
            total = replica.totals[name] = total_of(row, state["total_distance"])
            replica.met[name] = met_by(row, state)
            require(total.ride_id <= last_sent, "no checkpoint is past last_sent")
            replica.require_sum(name, total, "a total is the sum of its rides")
            replica.require_count(name, total, state)
    return replica


def number(row: Row, column: str) -> int:
    return int(text(row, column))


def text(row: Row, column: str) -> str:
    value = row[column]
    require(value is not None, f"{column} has a value")
    return str(value)


def millimetres(metres: Decimal | str | None) -> int:
    """Metres as millimetres. Raises ValueError for fractions of one."""
    whole = Decimal(metres or 0).scaleb(3)
    if whole != int(whole):
        raise ValueError(f"{metres} m is not a whole number of millimetres")
    return int(whole)


def position(redis_id: str) -> int:
    """A stream id as one number, which compares."""
    milliseconds, _, sequence = redis_id.partition("-")
    return (int(milliseconds) << 64) + int(sequence)


def as_number(term: bytes) -> int:
    """A term's name as a number. Foreign writers may have chosen any name."""
    return int.from_bytes(term, "big")


def term_of(row: Row) -> tuple[int, int]:
    return number(row, "after"), as_number(text(row, "term").encode())


def taken(row: Row) -> Ride:
    return Ride(number(row, "id"), millimetres(row.get("distance")))


def staged(row: Row) -> Ride:
    record = json.loads(text(row, "data"), parse_float=Decimal)
    require(record["id"] == number(row, "id"), "a record is about its ride")
    return Ride(record["id"], millimetres(record.get("distance")))


def met_by(checkpoint: Row, state: Row, before: int = 0) -> Met:
    """What a reader has met; `before` is what it had healed, where its state has not moved."""
    gaps, rides, skipped, ignored = (
        number(checkpoint, column)
        for column in ("gaps_healed", "records_healed", "resends_skipped", "entries_ignored")
    )
    healed = millimetres(state["distance_healed"]) if state else before
    return Met(gaps, rides, healed, skipped, ignored)


def total_of(row: Row, distance: str | None, was: Total | None = None) -> Total:
    """A checkpoint with its total; without a new distance, the total is as it `was`."""
    counted = was.distance if was and distance is None else millimetres(distance)
    return Total(position(text(row, "last_redis_id")), number(row, "position"), counted)
