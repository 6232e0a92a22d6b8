"""Where a fault takes place, and what one looks like."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.backup import Backup
from chaos.fleet import Fleet
from chaos.journal import Journal
from chaos.restore import Restore
from rocket_rides.log import Record


class Moot(Exception):
    """The fault could not be injected now: its victim was down, or busy with another fault."""


@dataclass
class Scene:
    """The fleet, the end of the play, and what the nemesis has to account for."""

    fleet: Fleet
    journal: Journal
    over: threading.Event = field(default_factory=threading.Event)
    foreign: set[Record] = field(default_factory=set)  # entries that it wrote or tried to
    restores: list[Restore] = field(default_factory=list)
    in_vain: list[Restore] = field(default_factory=list)  # when a standby was waited for
    backup: Backup | None = None  # the newest
    # Held while Postgres is restored, or fails over.
    restoring: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`, or until the faults are to end."""
        self.over.wait(seconds)


# Injects the fault, waits, and undoes it; returns what it hit, or raises Moot. All randomness comes
# from the dice, so that the seed decides it.
Fault = Callable[[Scene, random.Random], str]
