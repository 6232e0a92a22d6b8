"""What one round of a reader does, and what it met on the way."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from unified_log.readers.committed import Ignored, Malformed
from unified_log.readers.gaps import Healed
from unified_log.readers.held_out import HeldOut, Retried
from unified_log.tracing import Trace


class RoundStep(Enum):
    """Where a consumer can be made to crash, in order."""

    BEFORE_STATE = "before the batch was counted, or the repair looked at"
    BEFORE_COMMIT = "after its work and before its commit"
    AFTER_COMMIT = "after its commit"


@dataclass
class Round:
    """What one round did. By default: nothing."""

    records: list[Any] = field(default_factory=list)  # in the order of their positions
    traces: dict[int, Trace] = field(default_factory=dict)  # of these, by position
    healed: list[Healed] = field(default_factory=list)  # in that order, too
    skipped: int = 0  # re-sends
    malformed: list[Malformed] = field(default_factory=list)
    ignored: Ignored = field(default_factory=Ignored)
    rewound: bool = False  # to the start of the log, which was wiped or restored
    held: bool = False  # the streamer has not committed the next entry yet
    repair: object = None  # what the handler reports about its repair
    held_out: list[HeldOut] = field(default_factory=list)
    retried: list[Retried] = field(default_factory=list)  # that had been held out

    @property
    def did_nothing(self) -> bool:
        """Whether there was nothing to do, or nothing yet that the streamer has committed."""
        return self == Round(held=self.held)
