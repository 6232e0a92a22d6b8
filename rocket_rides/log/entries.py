"""The entries of the log form a chain: each names the one before it.

An entry is `XADD rocket-rides-log * data {"id": 521, "distance": 539.837} prev 520 term 5f3a…`:
`data` is the record's public JSON; `prev` the id of the record before it, so that a reader at 520
knows it has missed nothing, and a reader further back knows that it has; `term` is the leader's,
and tells a reader whether the entry comes from its own database: see `rocket_rides.terms`.
"""

from decimal import Decimal
from typing import Any

import msgspec

from rocket_rides.distance import is_exact
from rocket_rides.log import names
from rocket_rides.terms import NO_TERM

START = "0-0"
LARGEST_ID = 2**63 - 1  # of a record: Postgres' bigint
LONGEST_ID = len(str(LARGEST_ID))


# These are made by the thousand: a Struct is much faster than a NamedTuple, and the garbage
# collector does not track it.
class Entry(msgspec.Struct, frozen=True, gc=False):
    """What the stream holds under one id: alternating field names and values, as bytes."""

    redis_id: str
    fields: list[bytes]


class Record(msgspec.Struct, frozen=True, gc=False):
    """A well-formed entry. `distance` is in metres, `prev` the id of the record before it.

    Whether a reader believes it depends on `term`, copied from the entry, or empty if it has none.
    """

    id: int
    prev: int
    distance: Decimal
    term: bytes = NO_TERM


class _Data(msgspec.Struct, gc=False):
    id: int
    distance: Any  # a number with a point or an exponent is a Decimal, from the text as it is


_decode_data = msgspec.json.Decoder(_Data, float_hook=Decimal).decode


class Invalid(ValueError):
    """The entry is not a record; the message says why."""


def decode(fields: list[bytes]) -> Record:
    """Parse an entry, or raise Invalid. Whether to believe it is up to the caller."""
    match fields:
        case [names.DATA, data, names.PREV, prev_digits, names.TERM, term]:  # in APPEND's order
            pass
        case _:
            values = dict(zip(fields[::2], fields[1::2], strict=False))
            try:
                data, prev_digits = values[names.DATA], values[names.PREV]
            except KeyError as missing:
                raise Invalid(f"no field {missing.args[0].decode()!r}") from None
            term = values.get(names.TERM, NO_TERM)
    if not (prev_digits.isdigit() and len(prev_digits) <= LONGEST_ID):
        raise Invalid("prev is not a record's id")
    try:
        ride = _decode_data(data.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"data is not a record: {error}") from None
    except ArithmeticError:  # an exponent beyond what Decimal holds
        raise Invalid("distance is not a decimal number") from None
    distance = Decimal(ride.distance) if type(ride.distance) is int else ride.distance
    if type(distance) is not Decimal:
        raise Invalid("distance is not a decimal number")
    prev = int(prev_digits)
    if not prev < ride.id <= LARGEST_ID:
        raise Invalid(f"id {ride.id} is not above prev {prev}, or is out of range")
    if not is_exact(distance):
        raise Invalid(f"distance {distance:.6g} is out of range")
    return Record(ride.id, prev, distance, term)


def entries(reply: list[Any]) -> list[Entry]:
    """What a command such as XREAD or XRANGE answered about one stream."""
    return [Entry(redis_id.decode(), fields) for redis_id, fields in reply]


def as_numbers(redis_id: str) -> tuple[int, int]:
    """A stream id in a form that compares."""
    milliseconds, _, sequence = redis_id.partition("-")
    return int(milliseconds), int(sequence)
