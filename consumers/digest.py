"""What a batch of log entries comes to, for a consumer that stands at a given ride."""

from dataclasses import dataclass, field
from typing import NamedTuple

from rocket_rides.log import Entry, Invalid, Record, decode


class Gap(NamedTuple):
    """Rides with `after < id <= upto` that the log did not tell of."""

    after: int
    upto: int


class DeadLetter(NamedTuple):
    """An entry that is not a true record, and why."""

    entry: Entry
    reason: str


class Bounds(NamedTuple):
    """How far the log can be believed, by ride id."""

    last_sent: int  # the streamer has committed everything up to here
    last_drawn: int  # nobody has an id past this one


@dataclass
class Digest:
    """The entries of a batch, sorted out. `found` is in the order of the log."""

    last_ride_id: int
    last_redis_id: str
    found: list[Record | Gap] = field(default_factory=list)
    skipped: int = 0
    dead: list[DeadLetter] = field(default_factory=list)


def digest(entries: list[Entry], last_ride_id: int, last_redis_id: str, bounds: Bounds) -> Digest:
    """Sort out `entries` for a consumer that stands at the given ids.

    A record at or below `last_ride_id` is a re-send and is skipped. A record whose `prev` is
    above it shows a gap. A record past `last_sent` ends the batch: the streamer is about to
    commit it, or will send it again, or it tells of another history than this database's; it is
    not to be counted before the streamer has committed. An id that was never drawn is nobody's:
    `bounds` must be younger than `entries`.
    """
    result = Digest(last_ride_id, last_redis_id)
    for entry in entries:
        try:
            record = decode(entry.fields)
            if record.id > bounds.last_sent:
                if record.id > bounds.last_drawn:
                    raise Invalid(f"id {record.id} has never been drawn")
                break
        except Invalid as reason:
            result.dead.append(DeadLetter(entry, str(reason)))
            result.last_redis_id = entry.redis_id
            continue
        result.last_redis_id = entry.redis_id
        if record.id <= result.last_ride_id:
            result.skipped += 1
            continue
        if record.prev > result.last_ride_id:
            result.found.append(Gap(result.last_ride_id, record.prev))
        result.found.append(record)
        result.last_ride_id = record.id
    return result
