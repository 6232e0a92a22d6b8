"""The entries of the log form a chain: each names the one before it.

An entry is, in fields and values,

    id 521  type order.create  data {"id": 521, "amount": 539.83}  prev 520  term 5f3a…

`id` is its *position*, which all kinds of records draw from one sequence; `type` says what `data`,
the record's public JSON, is about. `prev` is the position of the record before it, so that a reader
at 520 knows it has missed nothing, and a reader further back knows that it has. `term` is the
leader's, and tells a reader whether the entry comes from its own database: see
`unified_log.terms`. Where a record belongs to a trace, `traceparent` and `tracestate` follow
(`unified_log.tracing`).
"""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from unified_log.log import names
from unified_log.terms import NO_TERM
from unified_log.tracing import Trace, parse

SomeData = TypeVar("SomeData", bound="Data")

START = "0-0"
LARGEST_ID = 2**63 - 1  # of a record: Postgres' bigint
LONGEST_ID = len(str(LARGEST_ID))
# What a person gets of an entry that is no record, and of a string in one that is too large.
KEPT = 512  # bytes of each name and value
KEPT_STRINGS = 16  # names and values
CUT_LONGER = 8192  # bytes: a record's data is no longer
MORE = b"... (%d names and values)"
# Such as a UUID: README.md says how one puts that right.
NO_KEY = "; 'id' must be the record's position, not your key"


# These are made by the thousand: a Struct is much faster than a NamedTuple, and the garbage
# collector does not track it.
class Entry(msgspec.Struct, frozen=True, gc=False):
    """What the stream holds under one id: alternating field names and values, as bytes."""

    redis_id: str
    fields: list[bytes]

    @property
    def trace(self) -> Trace | None:
        """What it carries as its trace, also where it is no record."""
        return _trace(_named(self.fields))

    @property
    def beginning(self) -> list[bytes]:
        """Its first names and values, each with its size if it is cut: 8 KiB at most."""
        kept = [cut(each, len(each), KEPT) for each in self.fields[:KEPT_STRINGS]]
        if len(self.fields) <= KEPT_STRINGS:
            return kept
        last = self.fields[-1]  # how many there were, if most were not even read
        is_told = last.startswith(MORE[:5]) and len(last) <= KEPT
        return [*kept, last if is_told else MORE % len(self.fields)]


class Record(msgspec.Struct, frozen=True, gc=False):
    """A well-formed entry of whatever type. `prev` is the position of the record before it.

    Whether it is a reader's own depends on `term`, copied from the entry, or empty if it has none.
    Only those who handle the type know what `data` says.
    """

    id: int  # its position
    type: bytes
    data: bytes
    prev: int
    term: bytes = NO_TERM
    trace: Trace | None = None


# As Postgres' bigint; without the format, generators of code take 32 bits.
Position = Annotated[int, msgspec.Meta(ge=1, le=LARGEST_ID, extra_json_schema={"format": "int64"})]


class Data(msgspec.Struct, frozen=True, gc=False):
    """What the data of every record has. Other members are ignored, so that later ones may come."""

    id: Annotated[Position, msgspec.Meta(description="The record's position.", examples=[521])]


class Invalid(ValueError):
    """The entry is not a record, or not one of its type; the message says why."""


def decode(fields: list[bytes]) -> Record:
    """Parse an entry, or raise Invalid. Whether it is committed is up to the caller."""
    trace = None
    match fields:
        case [  # in APPEND's order, and without a trace
            names.ID,
            id_digits,
            names.TYPE,
            type_,
            names.DATA,
            data,
            names.PREV,
            prev_digits,
            names.TERM,
            term,
        ]:
            pass
        case _:
            values = _named(fields)
            try:
                id_digits, type_ = values[names.ID], values[names.TYPE]
                data, prev_digits = values[names.DATA], values[names.PREV]
            except KeyError as missing:
                raise Invalid(f"no field {missing.args[0].decode()!r}") from None
            term = values.get(names.TERM, NO_TERM)
            trace = _trace(values)
    position, prev = _position(names.ID, id_digits), _position(names.PREV, prev_digits)
    if not prev < position <= LARGEST_ID:
        raise Invalid(f"id {position} is not above prev {prev}, or is out of range")
    return Record(position, type_, data, prev, term, trace)


def parse_data(record: Record, decoder: Callable[[str], SomeData], what: str) -> SomeData:
    """Parse a record's data with msgspec's decoder of it; `what` names it in messages.

    Raises Invalid. An ArithmeticError of the decoder's, from a float_hook, passes through.
    """
    try:
        data = decoder(record.data.decode())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        hint = NO_KEY if "`$.id`" in str(error) or "field `id`" in str(error) else ""
        raise Invalid(f"data is not a {what}: {error}{hint}") from None
    if data.id != record.id:
        raise Invalid(f"data is of {what} {data.id}, not {record.id}{NO_KEY}")
    return data


def _position(field: bytes, digits: bytes) -> int:
    if not (digits.isdigit() and len(digits) <= LONGEST_ID):
        raise Invalid(f"{field.decode()} is not a position")
    return int(digits)


def _named(fields: list[bytes]) -> dict[bytes, bytes]:
    return dict(zip(fields[::2], fields[1::2], strict=False))


def _trace(values: dict[bytes, bytes]) -> Trace | None:
    """The context that it carries; None if it carries none, or an invalid one."""
    if (parent := values.get(names.TRACEPARENT)) is None:
        return None
    state = values.get(names.TRACESTATE, b"")
    return parse(parent.decode(errors="replace"), state.decode(errors="replace"))


def cut(beginning: bytes, size: int, longest: int) -> bytes:
    """A value of `size` bytes, or, if that is more than `longest`, its beginning and its size."""
    if size <= longest:
        return beginning
    mark = b"... (%d bytes)" % size
    return beginning[: min(KEPT, longest) - len(mark)] + mark


def entries(reply: list[Any]) -> list[Entry]:
    """What a command such as XREAD or XRANGE answered about one stream."""
    return [Entry(redis_id.decode(), fields) for redis_id, fields in reply]


def as_numbers(redis_id: str) -> tuple[int, int]:
    """A stream id in a form that compares."""
    milliseconds, _, sequence = redis_id.partition("-")
    return int(milliseconds), int(sequence)
