"""Converts the rows of a recording, which are text as Postgres writes it, into numbers."""

from decimal import Decimal
from typing import NamedTuple

import msgspec

from lab.chaos.trace.pgoutput import Row
from lab.chaos.trace.specified import Ride, Total, require


class Data(msgspec.Struct):
    """The fields of a record that are judged."""

    id: int
    distance: Decimal


decode_record = msgspec.json.Decoder(Data).decode


class Met(NamedTuple):
    """A total's counts of gaps, re-sends and other entries; the distance is in millimetres."""

    gaps: int = 0
    rides: int = 0  # in those gaps
    distance: int = 0  # of those rides
    skipped: int = 0  # entries that were sent again
    not_ours: int = 0  # entries

    def since(self, before: "Met") -> "Met":
        return Met(*(now - then for now, then in zip(self, before, strict=True)))


def number(row: Row, column: str) -> int:
    return int(text(row, column))


def text(row: Row, column: str) -> str:
    value = row[column]
    require(value is not None, f"{column} is NULL")
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
    return Ride(number(row, "id"), millimetres(row["distance"]))


def staged(row: Row) -> Ride:
    record = decode_record(text(row, "data"))
    require(record.id == number(row, "id"), "a record is about its ride")
    return Ride(record.id, millimetres(record.distance))


def met_by(checkpoint: Row) -> Met:
    gaps, rides, skipped, not_ours = (
        number(checkpoint, column)
        for column in ("gaps_healed", "rides_healed", "resends_skipped", "entries_not_ours")
    )
    return Met(gaps, rides, millimetres(checkpoint["distance_healed"]), skipped, not_ours)


def total_of(row: Row, distance: str | None, was: Total | None = None) -> Total:
    """A checkpoint with its total; without a new distance, the total is as it `was`."""
    counted = was.distance if was and distance is None else millimetres(distance)
    return Total(position(text(row, "last_redis_id")), number(row, "last_ride_id"), counted)
