"""What a batch of log entries means to a reader that stands at a given ride."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rocket_rides.log import Entry, Invalid, Record, decode
from rocket_rides.terms import Range

NOTHING = Range(0, 0)


class Gap(NamedTuple):
    """Rides with `after < id <= upto` that the log did not contain."""

    after: int
    upto: int


class DeadLetter(NamedTuple):
    """An entry that is not a record, and why."""

    entry: Entry
    reason: str


class Bounds(NamedTuple):
    """How far the log can be believed, by ride id."""

    last_sent: int  # the streamer has committed everything up to this ride
    terms: Mapping[bytes, Range]  # which rides are believed under each term


@dataclass
class Unbelieved:
    """How many entries were not about a ride of this database, by the term that they carry."""

    # Foreign: the term is not this database's. Uncommitted: past the end of one that is, and so
    # never to be committed.
    foreign: Counter[bytes] = field(default_factory=Counter)
    uncommitted: Counter[bytes] = field(default_factory=Counter)

    def add(self, term: bytes, known: bool) -> None:
        (self.uncommitted if known else self.foreign)[term] += 1

    @property
    def total(self) -> int:
        return self.foreign.total() + self.uncommitted.total()


@dataclass
class Digest:
    """The entries of a batch, sorted out. `news` is in the order of the log."""

    last_ride_id: int
    last_redis_id: str
    news: list[Record | Gap] = field(default_factory=list)
    skipped: int = 0
    dead: list[DeadLetter] = field(default_factory=list)
    unbelieved: Unbelieved = field(default_factory=Unbelieved)

    def close_gap(self, upto: int) -> None:
        """Add what is left up to there as a gap: the log does not contain it."""
        if self.last_ride_id < upto:
            self.news.append(Gap(self.last_ride_id, upto))
            self.last_ride_id = upto


def digest(entries: list[Entry], last_ride_id: int, last_redis_id: str, bounds: Bounds) -> Digest:
    """Sort out `entries` for a reader that stands at the given ids.

    `bounds` must have been read after the entries: else one of a term that has just begun would
    count as foreign.

    A record is believed when its id lies in its term's range. Any other tells nothing and is
    counted as unbelieved. Of those believed, one at or below `last_ride_id` is a re-send and is
    skipped; one whose `prev` is above it shows a gap; and one past `last_sent` is held:
    it ends the batch, because the streamer is about to commit it or will send it again. Nothing
    counts before it is committed.
    """
    result = Digest(last_ride_id, last_redis_id)
    for entry in entries:
        try:
            record = decode(entry.fields)
        except Invalid as reason:
            result.dead.append(DeadLetter(entry, str(reason)))
            result.last_redis_id = entry.redis_id
            continue
        after, upto = bounds.terms.get(record.term, NOTHING)
        if not after < record.id <= upto:
            result.unbelieved.add(record.term, record.term in bounds.terms)
            result.last_redis_id = entry.redis_id
            continue
        if record.id > bounds.last_sent:
            break
        result.last_redis_id = entry.redis_id
        if record.id <= result.last_ride_id:
            result.skipped += 1
            continue
        if record.prev > result.last_ride_id:
            result.news.append(Gap(result.last_ride_id, record.prev))
        result.news.append(record)
        result.last_ride_id = record.id
    return result
