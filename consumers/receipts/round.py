"""What a round of a worker's two loops consists of, and what came of it."""

from dataclasses import dataclass, field
from enum import Enum

from consumers.belief import NotOurs, SetAside


class Step(Enum):
    """Where a worker can be made to crash, in order."""

    AFTER_READING = "after entries were read, before anything came of them"
    BEFORE_ACKNOWLEDGING = "after rides were in the inbox, before their entries were acknowledged"
    BEFORE_SENDING = "after attempts were written, before they were made"
    BEFORE_SAVING = "after attempts ended, before that was written"


@dataclass
class Round:
    """What one round did. By default: nothing."""

    # Of the loop that reads the log.
    queued: int = 0  # rides that came into the inbox
    is_settled: bool = True  # the streamer had committed all of them
    claimed: int = 0  # entries that a member had read, and not acknowledged in time
    set_aside: list[SetAside] = field(default_factory=list)
    not_ours: NotOurs = field(default_factory=NotOurs)
    made_group: bool = False  # it was not there
    # Of the loop that works off the queue: rides.
    delivered: list[int] = field(default_factory=list)
    dead: dict[int, str] = field(default_factory=dict)  # and why
    unwritten: dict[int, str] = field(default_factory=dict)  # Postgres refuses the outcome, and why
    again: dict[int, float] = field(default_factory=dict)  # after so many seconds
    swept: list[int] = field(default_factory=list)  # the log has not brought them
