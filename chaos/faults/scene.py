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
    """The fault could not be injected now: its victim was down, or another fault was at it."""


@dataclass
class Scene:
    """The fleet, the end of the play, and what the nemesis has to own up to."""

    fleet: Fleet
    journal: Journal
    over: threading.Event = field(default_factory=threading.Event)
    foreign: set[Record] = field(default_factory=set)  # entries that it wrote, or tried to
    restores: list[Restore] = field(default_factory=list)
    backup: Backup | None = None  # the newest
    restoring: threading.Lock = field(default_factory=threading.Lock)  # held by the one who does

    def wait(self, seconds: float) -> None:
        """Wait so long, or until all is to be well again."""
        self.over.wait(seconds)


# Injects the fault, waits, and undoes it; returns whom it hit, or raises Moot. All that is random
# comes from the dice, so that the seed decides it.
Fault = Callable[[Scene, random.Random], str]
