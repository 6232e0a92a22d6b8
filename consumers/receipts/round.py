"""What a round of a worker's two loops consists of, and what came of it."""

from dataclasses import dataclass, field
from enum import Enum

from consumers.belief import SetAside, Unbelieved


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
    claimed: int = 0  # entries that a member had read, and not acknowledged in time
    set_aside: list[SetAside] = field(default_factory=list)
    unbelieved: Unbelieved = field(default_factory=Unbelieved)
    made_group: bool = False  # it was not there
    # Of the loop that works off the queue.
    delivered: list[int] = field(default_factory=list)  # rides
    dead: dict[int, str] = field(default_factory=dict)  # rides, and why
    unwritten: dict[int, str] = field(default_factory=dict)  # outcomes that Postgres refuses
    again: int = 0  # attempts that failed, to be made again
    swept: list[int] = field(default_factory=list)  # rides that the log has not brought
