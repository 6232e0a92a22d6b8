"""What the rows of a recording say: text, as Postgres writes it, made into numbers."""

from collections.abc import Iterable
from decimal import Decimal

import msgspec

from lab.chaos.trace.pgoutput import Row
from lab.chaos.trace.replica import Healing, as_number, millimetres, position
from lab.chaos.trace.specified import Ride, Total, require


class _Data(msgspec.Struct):
    id: int
    distance: Decimal


decode_record = msgspec.json.Decoder(_Data).decode


def number(row: Row, column: str) -> int:
    return int(text(row, column))


def text(row: Row, column: str) -> str:
    value = row[column]
    require(value is not None, f"{column} is NULL")
    return str(value)


def minute(time: str | None) -> str:
    """The minute of a time in UTC, as Postgres writes it."""
    return (time or "")[:16]


def taken(row: Row) -> tuple[int, int, str]:
    return number(row, "id"), millimetres(row["distance"]), minute(row["created_at"])


def staged(row: Row) -> Ride:
    record = decode_record(text(row, "data"))
    require(record.id == number(row, "id"), "a record is about its ride")
    return Ride(record.id, millimetres(record.distance))


def name_of(row: Row) -> int:
    return as_number(text(row, "term").encode())


def healing_of(checkpoint: Row) -> Healing:
    gaps, rides, skipped = (
        number(checkpoint, column) for column in ("gaps_healed", "rides_healed", "resends_skipped")
    )
    return Healing(gaps, rides, millimetres(checkpoint["distance_healed"]), skipped)


def is_reopened(receipt: Row) -> bool:
    """Whether somebody has asked for a replay of it, or has dropped it."""
    return bool(receipt.get("replay_at") or receipt.get("dropped_at"))


def ids_of(rides: Iterable[Ride]) -> list[int]:
    return [ride.id for ride in rides]


def total_of(row: Row, distance: str | None, was: Total | None = None) -> Total:
    """A checkpoint and its total, which `was` the same if nothing is said of it."""
    counted = was.distance if was and distance is None else millimetres(distance)
    return Total(position(text(row, "last_redis_id")), number(row, "last_ride_id"), counted)
