"""What Postgres keeps with its time, and the words for it: leads, resets, runs, entries, records.

The statement returns numbers, and the words are made here, so that a person reads all of them in
one style.
"""

from datetime import datetime
from decimal import Decimal

import msgspec

from rocket_rides.words import metres
from unified_log.words import count, number
from watch.facts import Happened
from watch.naming import RECEIPTS, ROLLUP
from watch.runs import HELD, WRONG


class Kept(msgspec.Struct, tag_field="what"):
    """A row that tells what happened."""

    at: datetime


class Led(Kept, tag="led"):
    """A streamer began a term."""

    after: int

    def happened(self) -> Happened:
        return Happened(self.at, f"a streamer took the lead after position {number(self.after)}")


class Reset(Kept, tag="reset"):
    """A consumer repaired its total."""

    consumer: str
    run: int
    before: Decimal
    now: Decimal

    def happened(self) -> Happened:
        return Happened(
            self.at,
            f"{self.consumer} applied the reset of reconciliation {self.run}:"
            f" {metres(self.before)} m became {metres(self.now)} m",
        )


class Ran(Kept, tag="ran"):
    """A reconciliation ended."""

    run: int
    rides: int
    total: Decimal

    def happened(self) -> Happened:
        found = f"{count(self.rides, 'ride')}, {metres(self.total)} m"
        return Happened(self.at, f"reconciliation {self.run}: {found}")


class Faulted(Kept, tag="faulted"):
    """A run of the reconciliation ended, and not everything agreed."""

    run: int
    status: str
    reason: str

    def happened(self) -> Happened:
        what = {
            WRONG: "found something wrong",
            HELD: "holds what it found until a person decides",
        }.get(self.status, f"failed: {self.reason}")
        return Happened(self.at, f"run {self.run} of the reconciliation {what}", is_fault=True)


class Malformed(Kept, tag="malformed entry"):
    """A reader, or a worker of the receipts, met a malformed entry."""

    kind: str
    consumer: str
    reason: str

    def happened(self) -> Happened:
        who = {"receipts": RECEIPTS, "rollup": ROLLUP}.get(self.kind, self.consumer)
        words = f"{who} met a malformed entry: {self.reason}"
        return Happened(self.at, words, is_fault=True, is_entry=True)


class HeldOut(Kept, tag="held out"):
    """A consumer, or Postgres on its behalf, refused a record."""

    kind: str
    consumer: str
    position: int
    type: str
    reason: str

    def happened(self) -> Happened:
        who = ROLLUP if self.kind == "rollup" else self.consumer
        words = f"{who} holds out {self.type} {number(self.position)}: {self.reason}"
        return Happened(self.at, words, is_fault=True)


AnyKept = Led | Reset | Ran | Faulted | Malformed | HeldOut
