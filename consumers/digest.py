"""What a batch of log entries comes to, for a consumer that stands at a given ride."""

from collections.abc import Callable
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


@dataclass
class Digest:
    """The entries of a batch, sorted out. `found` is in the order of the log."""

    last_ride_id: int
    found: list[Record | Gap] = field(default_factory=list)
    skipped: int = 0
    dead: list[DeadLetter] = field(default_factory=list)


def digest(entries: list[Entry], last_ride_id: int, last_drawn: Callable[[], int]) -> Digest:
    """Sort out `entries` for a consumer whose last counted ride is `last_ride_id`.

    A record at or below it is a re-send and is skipped. A record whose `prev` is above it shows
    a gap. `last_drawn` tells the sequence's last value: an id beyond that is nobody's.
    """
    result = Digest(last_ride_id)
    highest = 0
    for entry in entries:
        try:
            record = decode(entry.fields)
            if record.id > highest:
                highest = last_drawn()
                if record.id > highest:
                    raise Invalid(f"id {record.id} has never been drawn")
        except Invalid as reason:
            result.dead.append(DeadLetter(entry, str(reason)))
            continue
        if record.id <= result.last_ride_id:
            result.skipped += 1
            continue
        if record.prev > result.last_ride_id:
            result.found.append(Gap(result.last_ride_id, record.prev))
        result.found.append(record)
        result.last_ride_id = record.id
    return result
