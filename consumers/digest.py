"""What a batch of log entries means to a reader that stands at a given ride."""

from dataclasses import dataclass, field

from consumers.belief import Bounds, NotOurs, SetAside, is_ours
from consumers.gaps import Gap
from rocket_rides.log import Entry, Invalid, Record, decode


@dataclass
class Digest:
    """The entries of a batch, sorted out. Records and gaps are in the order of their rides."""

    last_ride_id: int
    last_redis_id: str
    records: list[Record] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    skipped: int = 0
    set_aside: list[SetAside] = field(default_factory=list)
    not_ours: NotOurs = field(default_factory=NotOurs)

    def close_gap(self, upto: int, *, is_last: bool = True) -> None:
        """Add what is left up to there as a gap, or a piece of one: the log does not contain it."""
        if self.last_ride_id < upto:
            self.gaps.append(Gap(self.last_ride_id, upto, is_last))
            self.last_ride_id = upto


def digest(entries: list[Entry], last_ride_id: int, last_redis_id: str, bounds: Bounds) -> Digest:
    """Sort out `entries` for a reader that stands at the given ids.

    `bounds` must have been read after the entries: else one of a term that has just begun would
    count as foreign.

    An entry that is not ours tells nothing and is counted as not ours (`consumers.belief`). Of
    the others, one at or below `last_ride_id` is a re-send and is skipped; one whose `prev` is
    above it shows a gap; and one past `last_sent` is held: it ends the batch, because the streamer
    is about to commit it or will send it again. Nothing counts before it is committed.
    """
    result = Digest(last_ride_id, last_redis_id)
    for entry in entries:
        try:
            record = decode(entry.fields)
        except Invalid as reason:
            result.set_aside.append(SetAside(entry, str(reason)))
            result.last_redis_id = entry.redis_id
            continue
        if not is_ours(record, bounds):
            result.not_ours.add(record, bounds)
            result.last_redis_id = entry.redis_id
            continue
        if record.id > bounds.last_sent:
            break
        result.last_redis_id = entry.redis_id
        if record.id <= result.last_ride_id:
            result.skipped += 1
            continue
        if record.prev > result.last_ride_id:
            result.gaps.append(Gap(result.last_ride_id, record.prev))
        result.records.append(record)
        result.last_ride_id = record.id
    return result
