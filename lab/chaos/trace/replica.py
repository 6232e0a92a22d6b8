"""What a recording has told so far: the database as the judge has it, and the log.

Rides that were sent are settled: nothing below them is still to come. So they have running sums,
and the distance between two of them takes one look each. Distances are millimetres.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

from lab.chaos.trace.recording import Appended, Loss
from lab.chaos.trace.specified import Bounds, Entry, Ride, Terms, Total

UNREAD = 2.0  # seconds after a fault in which its effects may show


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


def as_entry(told: Appended) -> Entry:
    record = told.record
    ride = Ride(record.id, millimetres(record.distance))
    return Entry(position(told.redis_id), ride, record.prev, as_number(record.term))


class LogBook:
    """The log's entries as the onlooker saw them, and when some may have gone unseen."""

    def __init__(self, entries: Iterable[Appended], losses: Iterable[Loss], longest: int) -> None:
        self._longest = longest  # that the log is, in entries
        self._losses = [*losses]
        self._of_ride: dict[tuple[int, int], list[Entry]] = {}
        self._seen: list[float] = []  # when each entry was, in that order
        self._ends = [0]  # of the log, with the first n entries seen
        told: list[tuple[Entry, float]] = []
        for each in entries:
            entry = as_entry(each)
            told.append((entry, each.at))
            self._of_ride.setdefault((entry.term, entry.ride.id), []).append(entry)
            self._seen.append(each.at)
            self._ends.append(max(self._ends[-1], entry.redis_id))
        told.sort(key=lambda pair: pair[0].redis_id)
        self._entries = [entry for entry, _ in told]
        self._at = [at for _, at in told]
        self._ids = [entry.redis_id for entry in self._entries]

    def between(self, after: int, upto: int) -> list[Entry]:
        """What lies behind one position, up to another; from the very start, what is kept of it.

        A reader takes no more at once; it starts over because those before are gone.
        """
        first, last = bisect_right(self._ids, after), bisect_right(self._ids, upto)
        return self._entries[first if after else max(first, last - self._longest) : last]

    def was_gone(self, entry: Entry, began: float, by: float) -> bool:
        """Whether the log may have let go of an entry before a reader of a life came to it."""
        seen = self._at[bisect_left(self._ids, entry.redis_id)]
        return entry.redis_id <= self._trimmed(began, by) or any(
            loss.began <= by and seen <= loss.ended + UNREAD for loss in self._losses
        )

    def _trimmed(self, began: float, by: float) -> int:
        """Up to which position the log may have been trimmed.

        The readers of the life before may have had all that was there as this one `began`, and the
        log keeps no more than its longest.
        """
        read = bisect_right(self._seen, began)
        surplus = bisect_right(self._seen, by + UNREAD) - self._longest
        return self._ends[max(read, surplus)]

    def about(self, term: int, ride: Ride, prev: int) -> list[Entry]:
        """What a term's leader has said of a ride: that it follows `prev`, if it ever said so.

        Others may have written under the same term once a restore has taken it back.
        """
        told = self._of_ride.get((term, ride.id), [])
        return [entry for entry in told if (entry.ride, entry.prev) == (ride, prev)] or told

    def has_lost(self, by: float) -> bool:
        """Whether a fault may have taken entries by then."""
        return any(loss.began <= by for loss in self._losses)

    def hides(self, at: float) -> bool:
        """Whether a fault may have kept entries of that moment from the onlooker."""
        return any(loss.began <= at <= loss.ended + UNREAD for loss in self._losses)


class Healing(NamedTuple):
    """What a total has counted of healing; the distance is in millimetres."""

    gaps: int = 0
    rides: int = 0  # in those gaps
    distance: int = 0  # of those rides
    skipped: int = 0  # entries that were sent again

    def since(self, before: "Healing") -> "Healing":
        return Healing(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass
class Replica:
    """One life of the database."""

    last_sent: int = 0
    first_sent: int = 0  # last_sent, as the life began
    heights: set[int] = field(default_factory=set)  # each last_sent of this life
    terms: Terms = ()
    drawn: int = 0  # at least
    rides: dict[int, int] = field(default_factory=dict)  # distances
    minutes: dict[int, str] = field(default_factory=dict)  # of rides
    staged: list[Ride] = field(default_factory=list)  # sorted
    sent: list[int] = field(default_factory=list)  # rides, sorted
    sums: list[int] = field(default_factory=lambda: [0])  # of the first n rides sent
    # Their rows, by kind and name.
    checkpoints: dict[tuple[str, str], str] = field(default_factory=dict)
    totals: dict[str, Total] = field(default_factory=dict)
    healing: dict[str, Healing] = field(default_factory=dict)  # by total
    drifts: dict[str, int] = field(default_factory=dict)  # by total: what the nemesis has added
    rollup: int = 0  # how far the marker is
    computed: dict[str, int] = field(default_factory=dict)  # minutes, and their labels
    in_minute: dict[str, list[int]] = field(default_factory=dict)  # rides sent
    complete_to: int = 0
    generation: str = ""
    resets: dict[int, str] = field(default_factory=dict)  # what became of each
    outcomes: dict[int, str] = field(default_factory=dict)
    reopened: set[int] = field(default_factory=set)  # rides with an outcome that may be replaced
    receipts_complete_to: int = 0
    mends: int = 0  # of that

    def take(self, ride: int, distance: int, minute: str) -> None:
        self.rides[ride] = distance
        self.minutes[ride] = minute
        self.drawn = max(self.drawn, ride)

    def stage(self, ride: Ride) -> None:
        insort(self.staged, ride)

    def staged_upto(self, upto: int) -> list[Ride]:
        return self.staged[: bisect_right(self.staged, upto, key=lambda ride: ride.id)]

    def send(self, rides: Iterable[int], upto: int) -> None:
        """These were sent, in their order, and last_sent is there."""
        for ride in rides:
            self.sent.append(ride)
            self.sums.append(self.sums[-1] + self.rides[ride])
            self.in_minute.setdefault(self.minutes[ride], []).append(ride)
        self.last_sent = upto
        self.heights.add(upto)

    def unstage(self, rides: Iterable[int]) -> None:
        gone = {*rides}
        self.staged = [ride for ride in self.staged if ride.id not in gone]

    def sent_between(self, after: int, upto: int) -> list[int]:
        return self.sent[bisect_right(self.sent, after) : bisect_right(self.sent, upto)]

    def total_upto(self, ride: int) -> int:
        return self.sums[bisect_right(self.sent, ride)]

    def of_minute(self, minute: str, upto: int) -> list[int]:
        """The rides that were sent and fall into a minute, up to one."""
        rides = self.in_minute.get(minute, [])
        return rides[: bisect_right(rides, upto)]

    def terms_about(self, names: set[int]) -> Terms:
        """These terms, and where they end: what decides whether their entries are true."""
        kept = {at for at, (_, name) in enumerate(self.terms) if name in names}
        return tuple(
            self.terms[at] for at in sorted(kept | {at + 1 for at in kept}) if at < len(self.terms)
        )

    def bounds(self, terms: Terms) -> Bounds:
        """How far entries of these terms can be believed."""
        return Bounds(self.last_sent, self.drawn, terms)

    def begin_term(self, after: int, name: int) -> Terms:
        """The terms, were this one to begin."""
        at = bisect_left(self.terms, after, key=lambda term: term[0])
        others = (term for term in self.terms[at:] if term[0] != after)
        return (*self.terms[:at], (after, name), *others)
