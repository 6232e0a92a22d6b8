"""The wording of what is proved beside the totals: the rollup, the receipts and the outbox."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from analytics.result import (
    NAMED,
    Mismatch,
    OutboxVerdict,
    ReceiptsVerdict,
    Result,
    RollupVerdict,
    Some,
    Tally,
    WrongMinute,
)
from rocket_rides.words import count, metres, number

NOTHING_TO_COMPARE = "nothing to compare"


class Proof(NamedTuple):
    """A line of the table. `looked_at` is at how many of what, and how far of all that was sent."""

    name: str
    looked_at: str
    outcome: str
    agrees: bool


def proofs(result: Result) -> Iterator[Proof]:
    """A line for each that was looked at."""
    if rollup := result.rollup:
        minutes = f"{count(rollup.minutes, 'minute')} {_upto(result, rollup.upto)}"
        yield Proof("rollup", minutes, rollup_outcome(result, rollup), rollup.agrees)
    if receipts := result.receipts:
        looked_at = f"{count(receipts.rides, 'ride')} {_upto(result, receipts.upto)}"
        yield Proof("receipts", looked_at, receipts_outcome(result, receipts), receipts.agrees)
    if outbox := result.outbox:
        staged = count(outbox.staged, "staged record")
        yield Proof("outbox", staged, outbox_outcome(outbox), outbox.agrees)


def _upto(result: Result, upto: int) -> str:
    behind = f" of {result.last_ride_id}" if upto < result.last_ride_id else ""
    return f"up to ride {upto}{behind}"


def rollup_outcome(result: Result, rollup: RollupVerdict) -> str:
    known = f"{count(rollup.set_aside, 'minute')} set aside" if rollup.set_aside else ""
    wrong = f"{count(len(rollup.wrong), 'minute')} wrong{follows(result, 'to be computed anew')}"
    parts = [wrong] if rollup.wrong else ["agrees" if rollup.minutes else NOTHING_TO_COMPARE]
    return ", ".join([*parts, known] if known else parts)


def receipts_outcome(result: Result, receipts: ReceiptsVerdict) -> str:
    parts = []
    if missing := receipts.missing.rides:
        parts.append(f"{number(missing)} without an outcome{follows(result, 'to be delivered')}")
    if strange := receipts.strange.rides:
        parts.append(f"{number(strange)} of no ride")
    return ", ".join(parts) or ("agrees" if receipts.rides else NOTHING_TO_COMPARE)


def outbox_outcome(outbox: OutboxVerdict) -> str:
    kinds = (
        (outbox.sent, "at or below last_sent"),
        (outbox.orphans, "without a ride"),
        (outbox.different, "with another distance than the ride's"),
    )
    return (
        ", ".join(f"{number(some.rides)} {kind}" for some, kind in kinds if some.rides) or "agrees"
    )


def follows(result: Result, what: str) -> str:
    """What happens next, after a colon."""
    if result.requested:
        return f": {what}"
    return ": not repaired" if result.repairing else ": not repaired (--check)"


def named(result: Result) -> Iterator[tuple[str, list[str]]]:
    """What is wrong, each by its name: a sentence, and what it is about."""
    if result.rollup and (wrong := result.rollup.wrong):
        more = [f"and {number(len(wrong) - NAMED)} more"] if len(wrong) > NAMED else []
        yield "Minutes that are not the sum of their rides:", [*map(minute, wrong[:NAMED]), *more]
    receipts, outbox = result.receipts or ReceiptsVerdict(), result.outbox or OutboxVerdict()
    for some, what in (
        (receipts.missing, "Rides whose receipt has no outcome:"),
        (receipts.strange, "Receipts of rides that don't exist:"),
        (outbox.sent, "Staged records at or below last_sent:"),
        (outbox.orphans, "Staged records without a ride:"),
        (outbox.different, "Staged records with another distance than their ride's:"),
    ):
        if some.rides:
            yield what, [rides(some)]


def minute(wrong: WrongMinute) -> str:
    """What a minute has, and what it must have."""
    has = "missing" if wrong.rolled_up is None else sums(wrong.rolled_up)
    return f"{moment(wrong.minute)}: {has}; its rides: {sums(wrong.exact)}"


def sums(of: Tally) -> str:
    return f"{count(of.rides, 'ride')}, {metres(of.distance)} m"


def rides(some: Some) -> str:
    """7, 12 and 3 more."""
    ids = ", ".join(map(str, some.ids))
    more = some.rides - len(some.ids)
    return f"{ids} and {number(more)} more" if more else ids


def whose(mismatch: Mismatch) -> str:
    """Which rides the warehouse and Postgres disagree on."""
    if mismatch.minute:
        return f"rides of {moment(mismatch.minute)}"
    return f"rides {mismatch.after + 1} to {mismatch.upto}"


def moment(of: datetime) -> str:
    return f"{of.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def clauses(result: Result) -> Iterator[str]:
    """For the verdict, beside the totals: what agrees, or what is wrong and what follows."""
    if result.agrees and (agree := [f"the {name}" for name in _compared(result)]):
        *others, last = agree
        yield f"so do {', '.join(others)} and {last}" if others else f"so does {last}"
    receipts, outbox = result.receipts or ReceiptsVerdict(), result.outbox or OutboxVerdict()
    if wrong := len(result.rollup.wrong if result.rollup else []):
        minutes = f"{count(wrong, 'minute')} of the rollup"
        yield minutes + _wrong(wrong, result, "wrong", "computed anew")
    if missing := receipts.missing.rides:
        yield count(missing, "receipt") + _wrong(missing, result, "missing", "delivered")
    if strange := receipts.strange.rides:
        yield f"{count(strange, 'receipt')} {'is' if strange == 1 else 'are'} of no ride"
    if not outbox.agrees:
        yield "the outbox has records that are wrong"


def _compared(result: Result) -> list[str]:
    """What there was something of to compare, where there was a total to compare, too."""
    found = (
        ("rollup", result.rollup and result.rollup.minutes),
        ("receipts", result.receipts and result.receipts.rides),
        ("outbox", result.outbox and result.outbox.staged),
    )
    return [name for name, number in found if number and result.consumers]


def _wrong(number: int, result: Result, what: str, how: str) -> str:
    if result.requested:
        return f" {'was' if number == 1 else 'were'} {what} and will be {how}"
    return f" {'is' if number == 1 else 'are'} {what}"
