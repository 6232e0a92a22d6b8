"""What a run finds: each finding says what is wrong, with whom, and whether it awaits a person.

A finding that is held changes nothing until it is approved (`analytics.approve`), or until what it
is about is put right. The digest of a run's held findings is made of their keys alone, and a key
only of what is wrong: not of how far the log has gone on meanwhile.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from analytics.result import (
    Compared,
    CountedRatings,
    Mismatch,
    OutboxVerdict,
    ReceiptsVerdict,
    Stretch,
)
from analytics.rows import Differing, Fields
from rocket_rides.words import of_rides, signed
from unified_log.words import count, number, printable

if TYPE_CHECKING:
    from analytics.look import Look

RIDES_CHANGED, RIDES_UNDECIDED = "rides_changed", "rides_undecided"
WAREHOUSE_CHANGED, RECORDS_MISSING = "warehouse_changed", "records_missing"
TOTAL_WRONG, TOTAL_HELD = "total_wrong", "total_held"
READER_GONE, READER_BEHIND, READER_RECOUNTS = "reader_gone", "reader_behind", "reader_recounts"
READER_STRAY = "reader_stray"
MINUTES_WRONG, MINUTES_HELD = "minutes_wrong", "minutes_held"
RECEIPTS_MISSING, RECEIPTS_STRANGE, OUTBOX_WRONG = (
    "receipts_missing", "receipts_strange", "outbox_wrong",
)  # fmt: skip
RATINGS_WRONG, RATINGS_HELD, RATINGS_CHANGED = "ratings_wrong", "ratings_held", "ratings_changed"
CLOSING_WRONG, CLOSING_CHANGED = "closing_wrong", "closing_changed"

PART = {
    RIDES_CHANGED: "warehouse", RIDES_UNDECIDED: "warehouse", WAREHOUSE_CHANGED: "warehouse",
    RECORDS_MISSING: "records", TOTAL_WRONG: "totals", TOTAL_HELD: "totals",
    READER_GONE: "readers", READER_BEHIND: "readers", READER_RECOUNTS: "readers",
    READER_STRAY: "readers",
    MINUTES_WRONG: "rollup", MINUTES_HELD: "rollup",
    RECEIPTS_MISSING: "receipts", RECEIPTS_STRANGE: "receipts", OUTBOX_WRONG: "outbox",
    RATINGS_WRONG: "ratings", RATINGS_HELD: "ratings", RATINGS_CHANGED: "ratings",
    CLOSING_WRONG: "closings", CLOSING_CHANGED: "closings",
}  # fmt: skip


class Finding(msgspec.Struct, frozen=True):
    """`about` is a sentence for a person. `key` tells it from other findings of its kind.

    One about rides has their range, how many differ, and the first of them.
    """

    kind: str
    about: str
    held: bool = False
    key: str = ""
    after: int | None = None
    upto: int | None = None
    differing: int = 0
    rides: tuple[Differing, ...] = ()
    # At whose minutes, and receipts, the next run looks again, whatever it finds else.
    days: tuple[date, ...] = ()
    stretches: tuple[Stretch, ...] = ()

    @property
    def part(self) -> str:
        return PART[self.kind]

    @property
    def is_under_way(self) -> bool:
        """Whether nothing is wrong: what it is about can't be judged before it has ended."""
        return self.kind == READER_RECOUNTS

    def as_json(self) -> dict[str, Any]:
        """As `runs.findings` and the report for programs have it."""
        row: dict[str, Any] = {"kind": self.kind, "part": self.part, "held": self.held}
        row |= {"about": self.about, "key": self.key}
        if self.days:
            row["days"] = self.days
        if self.stretches:
            row["stretches"] = self.stretches
        if self.after is not None:
            row |= {"after": self.after, "upto": self.upto, "differing": self.differing}
            row["rides"] = [
                {"id": ride.id, "postgres": _fields(ride.postgres),
                 "warehouse": _fields(ride.warehouse)}
                for ride in self.rides
            ]  # fmt: skip
        return row


def _fields(of: Fields | None) -> dict[str, Any] | None:
    return of._asdict() if of else None


def digest(findings: Iterable[Finding]) -> str:
    """Of those that are held: what an approval is for; "" if none is."""
    keys = sorted(f"{each.kind} {each.key}" for each in findings if each.held)
    return sha256("\n".join(keys).encode()).hexdigest() if keys else ""


def verdicts(findings: Sequence[Finding], looked_at: Iterable[str]) -> dict[str, str]:
    """What became of each part: agreed, wrong or held."""
    told = dict.fromkeys(looked_at, "agreed")
    for each in findings:
        if each.is_under_way:
            continue
        told[each.part] = "held" if each.held or told.get(each.part) == "held" else "wrong"
    return told


def which(look: "Look") -> str:
    """The rides of a look that differ: how many, of which, and the first two."""
    differ = look.differ
    of = f"the rides {look.after + 1} to {look.known}"
    if not differ.rides:
        return of
    named = " and ".join(str(ride.id) for ride in differ.named[:2])
    what = "ride" if differ.rides == 1 else "rides"
    more = f" ({what} {named}{', ...' if differ.rides > 2 else ''})" if named else ""
    return f"{number(differ.rides)} of {of}{more}"


def of_look(kind: str, look: "Look", *, held: bool) -> Finding:
    """Rides on which Postgres and the warehouse disagree."""
    differ = look.differ
    about = {
        RIDES_CHANGED: f"Postgres was changed in {which(look)}",
        WAREHOUSE_CHANGED: f"the warehouse was changed in {which(look)}",
        RIDES_UNDECIDED: f"nobody agrees on {which(look)}",
    }[kind]
    if not held:
        about += ": read again from Postgres"
    key = f"{look.after} {differ.key or look.postgres}"
    return Finding(
        kind, about, held, key, look.after, look.known, differ.rides, differ.named, differ.days
    )


def of_minute(mismatch: Mismatch) -> Finding:
    """A minute's rides that changed while the run went on."""
    about = f"rides of {mismatch.minute:%Y-%m-%d %H:%M} UTC are not those that Spark has read"
    key = f"{mismatch.minute} {mismatch.postgres} {mismatch.warehouse}"
    days = (mismatch.minute.astimezone(UTC).date(),) if mismatch.minute else ()
    return Finding(RIDES_UNDECIDED, about, True, key, mismatch.after, mismatch.upto, days=days)


def of_total(one: Compared, *, held: bool) -> Finding:
    kind = TOTAL_HELD if held else TOTAL_WRONG
    rides = f", {of_rides(one.rides_off)}" if one.rides_off else ""
    off = (
        "stands past every record sent" if one.stray else f"is off by {signed(one.drift)} m{rides}"
    )
    key = f"{one.name} {one.drift} {one.rides_off} {one.stray}"
    return Finding(kind, f"{printable(one.name)} {off}", held, key)


def of_ratings(one: CountedRatings, *, held: bool) -> Finding:
    kind = RATINGS_HELD if held else RATINGS_WRONG
    by = one.off
    about = f"{printable(one.name)} is off by {by[0]:+,} ratings and {by[1]:+,} stars"
    return Finding(kind, about, held, f"{one.name} {by} {one.stray}")


def of_records(sent: int, seen: int, named: int = 0) -> Finding:
    """`named` are the rides of held blocks that the warehouse has more than Postgres."""
    held = f", or {number(seen + named)} with what is held as the warehouse has it" if named else ""
    about = (
        f"{number(sent)} records were sent, and the tables show {number(seen)}{held}: rows are"
        " gone, hidden, or were added by hand"
    )
    return Finding(RECORDS_MISSING, about, True, f"{sent - seen}")


def of_proofs(
    receipts: ReceiptsVerdict | None, outbox: OutboxVerdict | None, *, held: bool = False
) -> Iterable[Finding]:
    """What is wrong with the receipts, which may be `held`, and the outbox."""
    if receipts and receipts.missing.rides:
        wrong = receipts.missing
        about = (
            f"{count(wrong.rides, 'ride')} without the outcome of a receipt, from {wrong.ids[0]} on"
        )
        key, again = f"{wrong.rides} {wrong.ids}", receipts.proved.look_again
        yield Finding(RECEIPTS_MISSING, about, held, key, stretches=again)
    if receipts and receipts.strange.rides:
        wrong = receipts.strange
        about = f"{count(wrong.rides, 'receipt')} without a ride, from {wrong.ids[0]} on"
        again = receipts.proved.look_again
        yield Finding(RECEIPTS_STRANGE, about, key=str(wrong.ids), stretches=again)
    if outbox and not outbox.agrees:
        wrong_rides = outbox.sent.rides + outbox.orphans.rides + outbox.different.rides
        about = f"{count(wrong_rides, 'staged record')} that should not be there, or not so"
        yield Finding(OUTBOX_WRONG, about, key=str(wrong_rides))
