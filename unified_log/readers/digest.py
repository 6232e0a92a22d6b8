"""What a batch of log entries means to a reader that stands at a given position."""

from dataclasses import dataclass, field
from typing import Any

from unified_log.errors import in_one_line
from unified_log.log import Entry, Invalid, decode
from unified_log.readers.committed import Bounds, Ignored, Malformed, is_committed
from unified_log.readers.gaps import Gap
from unified_log.readers.healing import Item, Types
from unified_log.tracing import Trace


@dataclass
class Digest:
    """The entries of a batch, sorted out. Records and gaps are in the order of their positions."""

    position: int
    last_redis_id: str
    items: list[Item] = field(default_factory=list)  # of the types that the reader handles
    traces: dict[int, Trace] = field(default_factory=dict)  # by position; few records have one
    passed: int = 0  # records of other types
    gaps: list[Gap] = field(default_factory=list)
    skipped: int = 0
    malformed: list[Malformed] = field(default_factory=list)
    ignored: Ignored = field(default_factory=Ignored)

    @property
    def records(self) -> list[Any]:
        """What the types' functions made of the records."""
        return [item.record for item in self.items]

    def close_gap(self, upto: int, *, is_last: bool = True) -> None:
        """Add what the log lacks between `position` and `upto`, as a gap or a piece of one."""
        if self.position < upto:
            self.gaps.append(Gap(self.position, upto, is_last))
            self.position = upto


def digest(
    entries: list[Entry], position: int, last_redis_id: str, bounds: Bounds, types: Types
) -> Digest:
    """Sort out `entries` for a reader of these types that stands at a position and entry.

    `bounds` must have been read after the entries: else one of a term that has just begun would
    count as foreign.

    An entry that is not committed is ignored, and counted so (`readers/committed.py`). Of
    the others, one past `last_sent` is held: it ends the batch, because the streamer is about to
    commit it or will send it again. Nothing counts before it is committed. One at or below the
    reader's position is a re-send and is skipped; one whose `prev` is above it shows a gap. A
    record of a type that the reader does not handle passes: the position moves, and nobody looks
    at its data. What is not a record of its type is malformed; the next `prev` then shows a gap.
    """
    result = Digest(position, last_redis_id)
    for entry in entries:
        try:
            record = decode(entry.fields)
            if not is_committed(record, bounds):
                result.ignored.add(record, bounds)
            elif record.id > bounds.last_sent:
                break
            elif record.id <= result.position:
                result.skipped += 1
            else:
                if parse := types.get(record.type):
                    result.items.append(Item(record.id, record.type, parse(record)))
                    if record.trace:
                        result.traces[record.id] = record.trace
                else:
                    result.passed += 1
                if record.prev > result.position:
                    result.gaps.append(Gap(result.position, record.prev))
                result.position = record.id
        except Invalid as reason:
            # Whatever it quotes of the entry, Postgres takes.
            result.malformed.append(Malformed(entry, in_one_line(reason)))
        except Exception as error:
            error.add_note(f"while it parsed {record.type.decode()}, position {record.id}")
            raise
        result.last_redis_id = entry.redis_id
    return result
