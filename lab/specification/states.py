"""The parts of the core's states, and functions of them that take no step."""

from collections.abc import Iterable

from lab.specification.explorer import Value


class Ride(Value, frozen=True):
    """A record. One of another kind than a ride has no distance: nothing of it is counted."""

    id: int
    distance: int


class Writer(Value, frozen=True):
    name: int
    ride: Ride | None = None  # once it has drawn its number


class Leader(Value, frozen=True):
    """A streamer's session: all that it knows until its next step."""

    name: int  # its term
    last_sent: int
    settled: int = 0
    position: int = 0  # the sequence, as it was read; 0 outside of the barrier
    waits: tuple[int, ...] | None = None  # for these writers
    batch: tuple[Ride, ...] = ()
    sent: bool = False
    cut_off: bool = False  # from the database: it belongs to a past that was lost


class Entry(Value, frozen=True):
    redis_id: int
    ride: Ride
    prev: int
    term: int


class Consumer(Value, frozen=True):
    """Its checkpoint and total; the entries it read, and `known`, a last_sent past those, or 0."""

    redis_id: int = 0
    ride_id: int = 0
    distance: int = 0
    entries: tuple[Entry, ...] | None = None
    known: int = 0


class Database(Value, frozen=True):
    drawn: int = 0
    rides: tuple[Ride, ...] = ()
    staged: tuple[Ride, ...] = ()
    last_sent: int = 0
    terms: tuple[tuple[int, int], ...] = ()  # after, name


class State(Database, frozen=True):
    consumer: Consumer = Consumer()
    backup: Database | None = None  # to which a fail-over will set it back
    writers: tuple[Writer, ...] = ()
    leaders: tuple[Leader, ...] = ()
    log: tuple[Entry, ...] = ()
    appended: int = 0  # the greatest redis_id ever
    begun: int = 0  # from here on: what has been used of the bounds
    others: int = 0  # records of another kind
    leads: int = 0
    losses: int = 0
    failovers: int = 0
    resends: int = 0


def sent(s: State) -> list[Entry]:
    return [entry for entry in s.log if entry.ride.id <= s.last_sent and is_true(s, entry)]


def is_true(db: Database, entry: Entry) -> bool:
    """Whether an entry has a term of this database, and its ride lies within that term."""
    ends = (*(after for after, _ in db.terms[1:]), max(db.drawn, db.last_sent))
    return any(
        name == entry.term and after < entry.ride.id <= upto
        for (after, name), upto in zip(db.terms, ends, strict=False)
    )


def between(rides: Iterable[Ride], after: int, upto: int) -> int:
    """The distance of the rides with `after < id <= upto`."""
    return sum(ride.distance for ride in rides if after < ride.id <= upto)


def end(log: tuple[Entry, ...]) -> int:
    return log[-1].redis_id if log else 0
