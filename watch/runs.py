"""What is known of the reconciliation's runs: the newest one, and the last one that was completed.

A run is completed when it could compare what it had to, whatever it found: its status is then
agreed, wrong or held. What it found wrong is repaired, or a person repairs it; what is held awaits
a person's decision (docs/reconcile.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

AGREED, WRONG, HELD = "agreed", "wrong", "held"
RECOUNTS = "reader_recounts"  # a kind of finding: nothing is wrong, and a later run compares it
VERDICTS = (HELD, WRONG, AGREED)  # of a completed run, and of each of its parts; the gravest first
# What a run compares, in the order in which it is shown.
PARTS = (
    "totals",
    "readers",
    "warehouse",
    "records",
    "rollup",
    "receipts",
    "outbox",
    "ratings",
)
SHOWN = 10  # findings; the others are only counted


@dataclass(frozen=True)
class Finding:
    """Something that does not agree; `about` is a sentence, with names that anyone may give."""

    kind: str
    part: str
    held: bool
    about: str


@dataclass(frozen=True)
class Run:
    """A run that is under way, or that failed."""

    id: int
    since: datetime  # when it began; of one that failed, when it ended
    reason: str = ""  # why it failed


@dataclass(frozen=True)
class CompletedRun:
    """The last completed run. Its findings are open until a later run no longer finds them."""

    id: int
    status: str
    at: datetime  # when it ended
    ride: int  # the position up to which it compared everything
    verdicts: Mapping[str, str]  # by the part; nobody looked at a part that is missing
    findings: tuple[Finding, ...] = ()  # the first SHOWN, those that are held before the others
    open: Mapping[str, int] = field(default_factory=dict)  # how many there are, by their kind
    held: int = 0  # how many of them are held
    oldest_look: datetime | None = None  # no old ride was compared longer ago
    approved: bool = False  # a person decided what it held, and no run has acted on that yet

    def parts(self) -> list[tuple[str, list[str]]]:
        """Each verdict, the gravest first, and the parts that it was given to."""
        known = sorted(self.verdicts, key=lambda part: (*PARTS, part).index(part))
        given = ((it, [part for part in known if self.verdicts[part] == it]) for it in VERDICTS)
        return [(verdict, parts) for verdict, parts in given if parts]

    @property
    def recounting(self) -> bool:
        """Whether all that it found is that readers recount."""
        return self.open.keys() == {RECOUNTS}

    @property
    def more(self) -> int:
        """How many findings are not among those that are shown."""
        return max(sum(self.open.values()) - len(self.findings), 0)
