"""The nightly job's JSON, as far as it says what is wrong. docs/reconciliation.md describes it."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec


class Compared(msgspec.Struct):
    """A total, in metres."""

    name: str
    drift: Decimal
    stray: bool
    wrong: bool


class Tally(msgspec.Struct):
    rides: int
    distance: Decimal


class WrongMinute(msgspec.Struct):
    minute: datetime
    rolled_up: Tally | None


class Rollup(msgspec.Struct):
    upto: int
    wrong: list[WrongMinute]


class Some(msgspec.Struct):
    rides: int
    ids: list[int]


class Receipts(msgspec.Struct):
    upto: int
    missing: Some
    strange: Some


class Outbox(msgspec.Struct):
    sent: Some
    orphans: Some
    different: Some


class Report(msgspec.Struct):
    """What a run says."""

    agrees: bool
    last_ride_id: int
    consumers: list[Compared]
    mismatches: list[dict[str, Any]]
    rollup: Rollup | None
    receipts: Receipts | None
    outbox: Outbox | None
    notes: list[str]

    def others(self) -> Iterator[str]:
        """What it calls wrong that nobody has made so, each in words."""
        for mismatch in self.mismatches:
            yield f"the warehouse of the rides {mismatch['after']} to {mismatch['upto']}"
        if self.receipts and self.receipts.strange.rides:
            yield f"outcomes without rides: {self.receipts.strange.ids}"
        for name in ("sent", "orphans", "different"):
            some = getattr(self.outbox, name, None)
            if some and some.rides:
                yield f"records in the outbox ({name}): {some.ids}"

    @property
    def lists_nothing(self) -> bool:
        """Whether it calls nothing wrong."""
        return not (
            any(one.wrong or one.drift or one.stray for one in self.consumers)
            or (self.rollup and self.rollup.wrong)
            or (self.receipts and self.receipts.missing.rides)
            or any(self.others())
        )


def read_report(content: bytes) -> Report:
    """Raises msgspec.MsgspecError."""
    return msgspec.json.decode(content, type=Report)
