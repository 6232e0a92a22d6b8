"""Where a fault takes place, and what one looks like."""

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from chaos.fleet import Fleet
from chaos.ledger import Ledger


class Moot(Exception):
    """The fault could not be injected now: its victim was down, or another fault was at it."""


@dataclass
class Scene:
    """The fleet, the ledger for rides of the nemesis' own, and the end of the play."""

    fleet: Fleet
    ledger: Ledger
    over: threading.Event = field(default_factory=threading.Event)

    def wait(self, seconds: float) -> None:
        """Wait so long, or until all is to be well again."""
        self.over.wait(seconds)


# Injects the fault, waits, and undoes it; returns whom it hit, or raises Moot. All that is random
# comes from the dice, so that the seed decides it.
Fault = Callable[[Scene, random.Random], str]
