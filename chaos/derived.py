"""What the rollup and the receipts have made of the rides, read when a run is over."""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple


class Minute(NamedTuple):
    """One row of the rollup; `upto` is its label, `distance` is in metres."""

    rides: int
    distance: Decimal
    upto: int


@dataclass
class FinalRollup:
    """The rollup's rows, how far it calls itself complete, and what it still had to do."""

    minutes: dict[datetime, Minute]
    complete_to: int
    set_aside: list[str] = field(default_factory=list)  # each a sentence
    dirty: int = 0  # minutes in the Ick


@dataclass
class FinalReceipts:
    """What became of each ride's receipt (None: nothing yet), and what is still pending."""

    outcomes: dict[int, str | None]
    complete_to: int
    pending: list[str] = field(default_factory=list)  # Redis ids
