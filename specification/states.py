"""What the states of the core consist of: values, which no transition changes."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec

Step = tuple[Callable[..., Any], tuple[Any, ...]]  # a transition, and what it takes
Invariants = dict[str, Callable[[Any], bool]]  # by the number of the guarantee


class Refused(Exception):
    """The protocol does not allow this step in this state."""


class Value(msgspec.Struct, frozen=True, gc=False, order=True):
    """Immutable, hashable, and ordered field by field."""


class Ride(Value, frozen=True):
    id: int
    distance: int


class Writer(Value, frozen=True):
    name: int
    ride: Ride | None = None


class Leader(Value, frozen=True):
    """A streamer's session. It knows no more than this until its next step."""

    name: int  # its term
    last_sent: int
    settled: int = 0
    position: int = 0  # as the sequence was read; 0 while the barrier is not asked
    waits: tuple[int, ...] | None = None  # for these writers
    batch: tuple[Ride, ...] = ()
    sent: bool = False
    cut_off: bool = False  # from the database: it lives in a past that was lost


class Entry(Value, frozen=True):
    redis_id: int
    ride: Ride
    prev: int
    term: int


class Total(Value, frozen=True):
    """A consumer's checkpoint and state."""

    redis_id: int = 0
    ride_id: int = 0
    distance: int = 0


class Reading(Value, frozen=True):
    """What a consumer has read; `known`: what was sent before, if it read to the log's end."""

    entries: tuple[Entry, ...]
    known: int


class Database(Value, frozen=True):
    drawn: int = 0
    rides: tuple[Ride, ...] = ()
    staged: tuple[Ride, ...] = ()
    last_sent: int = 0
    terms: tuple[tuple[int, int], ...] = ()  # after, name
    totals: tuple[Total, ...] = ()


class State(Value, frozen=True):
    db: Database
    backup: Database | None = None
    writers: tuple[Writer, ...] = ()
    log: tuple[Entry, ...] = ()
    appended: int = 0  # the greatest redis_id ever
    leaders: tuple[Leader, ...] = ()
    readings: tuple[Reading | None, ...] = ()
    begun: int = 0  # what has been used of the bounds
    leads: int = 0
    losses: int = 0
    failovers: int = 0
    resends: int = 0


class Named(Protocol):
    @property
    def name(self) -> int: ...


T = TypeVar("T", bound=Named)
V = TypeVar("V")


def named(items: Iterable[T], name: int) -> T:
    for item in items:
        if item.name == name:
            return item
    raise Refused(f"there is no {name}")


def swap(items: tuple[T, ...], old: T, *new: T) -> tuple[T, ...]:
    """The items, with `new` in the place of `old`."""
    at = items.index(old)
    return (*items[:at], *new, *items[at + 1 :])


def with_(items: tuple[V, ...], at: int, new: V) -> tuple[V, ...]:
    return (*items[:at], new, *items[at + 1 :])


def require(allowed: object) -> None:
    if not allowed:
        raise Refused


def given(thing: V | None) -> V:
    """What this step needs, and what is there."""
    if thing is None:
        raise Refused
    return thing


def between(rides: Iterable[Ride], after: int, upto: int) -> int:
    """The distance of the rides with `after < id <= upto`."""
    return sum(ride.distance for ride in rides if after < ride.id <= upto)


def is_true(db: Database, entry: Entry) -> bool:
    """Whether an entry's term is this database's, and its ride within that term."""
    ends = (*(after for after, _ in db.terms[1:]), max(db.drawn, db.last_sent))
    return any(
        name == entry.term and after < entry.ride.id <= upto
        for (after, name), upto in zip(db.terms, ends, strict=False)
    )


def end(log: tuple[Entry, ...]) -> int:
    return log[-1].redis_id if log else 0
