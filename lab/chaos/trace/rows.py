"""What the rows of a recording say: text, as Postgres writes it, made into numbers."""

from decimal import Decimal
from typing import NamedTuple

import msgspec

from lab.chaos.trace.pgoutput import Row
from lab.chaos.trace.specified import Ride, Total, require


class Data(msgspec.Struct):
    """What is read of a record."""

    id: int
    distance: Decimal


decode_record = msgspec.json.Decoder(Data).decode


class Met(NamedTuple):
    """What a total has counted of what it has met in the log; the distance is in millimetres."""

    gaps: int = 0
    rides: int = 0  # in those gaps
    distance: int = 0  # of those rides
    skipped: int = 0  # entries that were sent again
    unbelieved: int = 0  # entries

    def since(self, before: "Met") -> "Met":
        return Met(*(now - then for now, then in zip(self, before, strict=True)))


def number(row: Row, column: str) -> int:
    return int(text(row, column))


def text(row: Row, column: str) -> str:
    value = row[column]
    require(value is not None, f"{column} is NULL")
    return str(value)


def millimetres(metres: Decimal | str | None) -> int:
    """Raises ValueError where there is less than one."""
    whole = Decimal(metres or 0).scaleb(3)
    if whole != int(whole):
        raise ValueError(f"{metres} m is not a whole number of millimetres")
    return int(whole)


def position(redis_id: str) -> int:
    """A stream id as one number, which compares."""
    milliseconds, _, sequence = redis_id.partition("-")
    return (int(milliseconds) << 64) + int(sequence)


def as_number(term: bytes) -> int:
    """A term's name; whoever writes to the log may have chosen it."""
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
    gaps, rides, skipped, unbelieved = (
        number(checkpoint, column)
        for column in ("gaps_healed", "rides_healed", "resends_skipped", "unbelieved_entries")
    )
    return Met(gaps, rides, millimetres(checkpoint["distance_healed"]), skipped, unbelieved)


def total_of(row: Row, distance: str | None, was: Total | None = None) -> Total:
    """A checkpoint and its total, which `was` the same if nothing is said of it."""
    counted = was.distance if was and distance is None else millimetres(distance)
    return Total(position(text(row, "last_redis_id")), number(row, "last_ride_id"), counted)
