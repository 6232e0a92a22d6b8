"""What a worker's round consists of, and what came of it."""

from dataclasses import dataclass, field
from enum import Enum

from consumers.belief import SetAside as DeadLetter
from consumers.belief import Unbelieved


class Step(Enum):
    """Where a worker can be made to crash, in order."""

    AFTER_READING = "after entries were read, before anything came of them"
    WHILE_SWEEPING = "between a sweep's look at what is unread and at what is pending"
    BEFORE_SENDING = "after attempts were written, before they were made"
    BEFORE_SAVING = "after attempts ended, before their outcomes were written"
    BEFORE_ACKNOWLEDGING = "after outcomes were written, before their entries were acknowledged"


@dataclass
class Round:
    """What one round did. By default: nothing."""

    delivered: list[int] = field(default_factory=list)  # rides
    dead: dict[int, str] = field(default_factory=dict)  # rides, and why
    unwritten: dict[int, str] = field(default_factory=dict)  # outcomes that Postgres refuses
    again: int = 0  # attempts that failed, to be made again
    claimed: int = 0  # entries of members that are gone or hang
    given_up: int = 0  # rides whose entries others have claimed
    swept: list[int] = field(default_factory=list)  # rides that the log has lost
    set_aside: list[DeadLetter] = field(default_factory=list)
    unbelieved: Unbelieved = field(default_factory=Unbelieved)
    made_group: bool = False  # it was not there
