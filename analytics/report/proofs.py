"""The wording of what is proved beside the totals: rollup, receipts, outbox and ratings."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from analytics.result import (
    Mismatch,
    OutboxVerdict,
    RatingsVerdict,
    ReceiptsVerdict,
    Result,
    RollupVerdict,
    Tally,
    WrongMinute,
    WrongRides,
)
from analytics.rows import NAMED
from rocket_rides.words import metres
from unified_log.words import count, number, printable

NOTHING_TO_COMPARE = "nothing to compare"


class Proof(NamedTuple):
    """A line of the table. `looked_at` says what was compared, how many, and up to where.

    `named` lists what is wrong: sentences, each with the names of what it is about.
    """

    name: str
    looked_at: str
    outcome: str
    agrees: bool
    named: list[tuple[str, list[str]]]


def proofs(result: Result) -> Iterator[Proof]:
    """A line for each that was looked at."""
    if result.rollup:
        yield _rollup(result, result.rollup)
    if result.receipts:
        yield _receipts(result, result.receipts)
    if result.outbox:
        yield _outbox(result.outbox)
    if result.ratings and result.ratings.consumers:
        yield _ratings(result, result.ratings)


def _rollup(result: Result, rollup: RollupVerdict) -> Proof:
    parts, named = [], []
    if wrong := rollup.wrong:
        minutes = count(len(wrong), "minute")
        waits = f"{minutes} other than the rides that are held"
        follow = f"{minutes} wrong{follows(result, 'to be computed anew')}"
        parts.append(waits if _rollup_waits(result) else follow)
        more = [f"and {number(len(wrong) - NAMED)} more"] if len(wrong) > NAMED else []
        which = [*map(minute, wrong[:NAMED]), *more]
        named.append(("Minutes that are not the sum of their rides:", which))
    else:
        parts.append("agrees" if rollup.minutes else NOTHING_TO_COMPARE)
    if rollup.set_aside:
        parts.append(f"{count(rollup.set_aside, 'minute')} set aside")
    looked_at = f"{count(rollup.minutes, 'minute')} {_upto(result, rollup.upto)}"
    return Proof("rollup", looked_at, ", ".join(parts), rollup.agrees, named)


def _receipts(result: Result, receipts: ReceiptsVerdict) -> Proof:
    missing = f"without an outcome{follows(result, 'to be delivered')}"
    return _of_rides(
        "receipts",
        f"{count(receipts.rides, 'ride')} {_upto(result, receipts.upto)}",
        "agrees" if receipts.rides else NOTHING_TO_COMPARE,
        (receipts.missing, missing, "Rides whose receipt has no outcome:"),
        (receipts.strange, "without a ride", "Receipts of rides that don't exist:"),
    )


def _outbox(outbox: OutboxVerdict) -> Proof:
    other = "with another distance than"
    return _of_rides(
        "outbox",
        count(outbox.staged, "staged record"),
        "agrees" if outbox.staged else NOTHING_TO_COMPARE,
        (outbox.sent, "at or below last_sent", "Staged records at or below last_sent:"),
        (outbox.orphans, "without a row", "Staged records without a row:"),
        (outbox.different, f"{other} the ride's", f"Staged records {other} their ride's:"),
    )


def _ratings(result: Result, ratings: RatingsVerdict) -> Proof:
    """A consumer of ratings that is wrong is named with both of its sums."""
    named = [
        f"{printable(each.name)}: {each.stars} stars in {each.ratings} ratings;"
        f" exact: {each.exact_stars} in {each.exact_ratings}"
        f"{f', of which {each.held_out_ratings} held out' if each.held_out_ratings else ''}"
        for each in ratings.wrong
    ]
    wrong = f"{count(len(named), 'consumer')} wrong{follows(result, 'to be counted anew')}"
    right = "recounts" if any(each.differs for each in ratings.consumers) else "agrees"
    looked_at = count(max(each.exact_ratings for each in ratings.consumers), "rating")
    sentences = [("Consumers that have other sums of ratings:", named)] if named else []
    outcome = wrong if named else right if ratings.agrees else "changed"
    if held_out := sum(each.held_out_ratings for each in ratings.consumers):
        stars = sum(each.held_out_stars for each in ratings.consumers)
        outcome += f"; held out: {count(held_out, 'rating')}, {count(stars, 'star')}"
    return Proof("ratings", looked_at, outcome, ratings.agrees, sentences)


def _of_rides(name: str, looked_at: str, right: str, *kinds: tuple[WrongRides, str, str]) -> Proof:
    """How many rides are wrong in each way, and which; or `right` if none is."""
    wrong = [kind for kind in kinds if kind[0].rides]
    outcome = ", ".join(f"{number(kind.rides)} {what}" for kind, what, _ in wrong) or right
    named = [(sentence, [rides(kind)]) for kind, _, sentence in wrong]
    return Proof(name, looked_at, outcome, not wrong, named)


def _upto(result: Result, upto: int) -> str:
    of = f" of {result.position}" if upto < result.position else ""
    return f"up to position {upto}{of}"


def follows(result: Result, what: str) -> str:
    """What happens next, after a colon."""
    if result.requested:
        return f": {what}"
    return ": not repaired" if result.repairing else ": not repaired (--check)"


def minute(wrong: WrongMinute) -> str:
    """What a minute has, and what it must have."""
    has = "missing" if wrong.rolled_up is None else sums(wrong.rolled_up)
    return f"{moment(wrong.minute)}: {has}; its rides: {sums(wrong.exact)}"


def sums(of: Tally) -> str:
    return f"{count(of.rides, 'ride')}, {metres(of.distance)} m"


def rides(wrong: WrongRides) -> str:
    """7, 12 and 3 more."""
    ids = ", ".join(map(str, wrong.ids))
    more = wrong.rides - len(wrong.ids)
    return f"{ids} and {number(more)} more" if more else ids


def whose(mismatch: Mismatch) -> str:
    """Which rides the warehouse and Postgres disagree on."""
    if mismatch.minute:
        return f"rides of {moment(mismatch.minute)}"
    return f"rides {mismatch.after + 1} to {mismatch.upto}"


def moment(of: datetime) -> str:
    return f"{of.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def clauses(result: Result) -> Iterator[str]:
    """For the verdict: what is wrong beside the totals, or what else agrees."""
    found = list(proofs(result))
    of_readers = (each for each in result.findings if each.part == "readers")
    if missing := sum(not each.is_under_way for each in of_readers):
        yield f"{count(missing, 'reader')} {'is' if missing == 1 else 'are'} missing or behind"
    waits = {"rollup"} if _rollup_waits(result) else set()
    if waits:
        yield "the rollup waits for what is held"
    if wrong := [proof.name for proof in found if not proof.agrees and proof.name not in waits]:
        yield f"something is wrong with {_listed(wrong)}"
    elif not result.findings and result.consumers:
        agree = [proof.name for proof in found if NOTHING_TO_COMPARE not in proof.outcome]
        if agree:
            is_plural = len(agree) > 1 or agree[0].endswith("s")
            yield f"so {'do' if is_plural else 'does'} {_listed(agree)}"


def _rollup_waits(result: Result) -> bool:
    """Whether its minutes differ from rides that are held, and nothing is found of them."""
    differs = result.rollup is not None and not result.rollup.agrees
    return differs and bool(result.held) and all(each.part != "rollup" for each in result.findings)


def _listed(names: Sequence[str]) -> str:
    *others, last = (f"the {name}" for name in names)
    return f"{', '.join(others)} and {last}" if others else last
