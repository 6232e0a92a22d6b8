"""Places in the log, as a person names them: what `--from` and `--to` of `make log` may say.

    521                    a position: the record's number
    1700000000000-0        a stream id, which has a dash
    14:30, 14:30:05        a time of day, in UTC, as the lines show it
    2026-03-28T14:30:00Z   a moment, as in RFC 3339
    90s, 10m, 12h, 7d      an age

A time of day is the last one that has passed; where `--from` says a time or an age, `--to` names
the first one after it.
Ages and times are Redis' clock's, which the stream's ids are taken from.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Annotated, NamedTuple

import msgspec

from unified_log import durations
from unified_log.log.entries import LARGEST_ID, as_numbers

RedisId = tuple[int, int]  # milliseconds, and a number: in a form that compares

LARGEST_PART = 2**64 - 1  # of a stream id
SMALLEST, GREATEST = (0, 0), (LARGEST_PART, LARGEST_PART)
DAY = 86_400_000  # milliseconds
UNITS = tuple(unit for unit in durations.SECONDS if unit)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_ID = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?Z?")


class Backwards(ValueError):
    """Nothing can lie in the range; the message says so to a person."""


class Position(NamedTuple):
    """Whatever entries of the stream have it: a double send has several."""

    number: int


class Id(NamedTuple):
    """The stream's."""

    numbers: RedisId


class Moment(NamedTuple):
    """Since 1970, in UTC."""

    milliseconds: int


class TimeOfDay(NamedTuple):
    """Since midnight, in UTC."""

    milliseconds: int


class Age(NamedTuple):
    """Before now, by Redis' clock."""

    seconds: float


Place = Position | Id | Moment | TimeOfDay | Age


class Range(NamedTuple):
    """Entries with `first <= id <= last`, and `lowest <= position <= highest`: those that it names.

    Where it names a position, it has only records.
    """

    first: RedisId | None = None
    last: RedisId | None = None
    lowest: int | None = None
    highest: int | None = None


def parse(text: str) -> Place:
    """Raises ValueError, with a message for a person."""
    text = text.strip()
    if re.fullmatch(r"[0-9]+", text) and len(text) <= 19 and int(text) <= LARGEST_ID:
        return Position(int(text))
    if _ID.fullmatch(text) and max(as_numbers(text)) <= LARGEST_PART:
        return Id(as_numbers(text))
    if match := _TIME_OF_DAY.fullmatch(text):
        parts = zip(match.groups(), (3600, 60, 1), strict=True)
        return TimeOfDay(sum(int(part or 0) * seconds for part, seconds in parts) * 1000)
    try:
        if text.endswith(UNITS):
            return Age(durations.seconds(text))
        moment = msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
        if moment >= EPOCH:
            return Moment((moment - EPOCH) // timedelta(milliseconds=1))
    except (ValueError, OverflowError):
        pass
    raise ValueError(
        "a position is expected, such as 521; a stream id, such as 1700000000000-0; a time, such"
        " as 14:30 or 2026-03-28T14:30:00Z; or an age, such as 10m"
    )


def between(start: Place | None, end: Place | None, clock: Callable[[], int]) -> Range:
    """What lies from `start` to `end`, an id or a position included, a time left out at the end.

    `clock` is asked for the time, in milliseconds since 1970, only where it matters. Raises
    Backwards where nothing can lie between them, and whatever `clock` raises.
    """
    first, last, lowest, highest = Range()
    begun = None
    match start:
        case Position(number):
            lowest = number
        case Id(numbers):
            first = numbers
        case Moment() | TimeOfDay() | Age():
            begun = _milliseconds(start, clock, None)
            first = (begun, 0)
    match end:
        case Position(number):
            highest = number
        case Id(numbers):
            last = numbers
        case Moment() | TimeOfDay() | Age():
            last = before((_milliseconds(end, clock, begun), 0))
    if (first and last and last < first) or (
        lowest is not None and highest is not None and highest < lowest
    ):
        raise Backwards("--from has to be before --to")
    return Range(first, last, lowest, highest)


def before(redis_id: RedisId) -> RedisId:
    """The greatest id that is smaller; 0-0, which no entry has, comes before itself."""
    milliseconds, number = redis_id
    if number:
        return milliseconds, number - 1
    return (milliseconds - 1, LARGEST_PART) if milliseconds else SMALLEST


def after(redis_id: RedisId) -> RedisId:
    """The smallest id that is greater."""
    milliseconds, number = redis_id
    return (milliseconds, number + 1) if number < LARGEST_PART else (milliseconds + 1, 0)


def _milliseconds(
    time: Moment | TimeOfDay | Age, clock: Callable[[], int], begun: int | None
) -> int:
    """Since 1970; a time of day is the first one from `begun` on, or the last one until now."""
    match time:
        case Moment(milliseconds):
            return milliseconds
        case Age(seconds):
            return max(0, clock() - round(seconds * 1000))
        case TimeOfDay(milliseconds):
            if begun is not None:
                return begun + (milliseconds - begun) % DAY
            now = clock()
            return now - (now - milliseconds) % DAY
