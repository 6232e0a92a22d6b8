"""Checks the counts: each lies between what is known for certain and the most that can have been.

What other tables tell is compared exactly. What only the readers' own lines tell is exact where no
process was killed and no session failed; otherwise a commit may be without its line. After a
restore the counts are those of the backup, so lines from around it may count or not.
"""

from collections.abc import Iterator
from decimal import Decimal, localcontext
from heapq import nlargest

from lab.chaos.accounts import Account, Tally
from lab.chaos.drifts import OUTCOME
from lab.chaos.evidence import Evidence
from lab.chaos.receipts_checker import DEAD, DELIVERED
from lab.chaos.restore import LATE
from rocket_rides.distance import EXACT

Findings = Iterator[str]


def counts_agree_with_other_tables(evidence: Evidence) -> Findings:
    """Exactly: they are written in the same transactions.

    A dead letter that is delivered after all counts in both, but this receiver's never is.
    """
    counts = evidence.counts
    if counts is None:
        return
    for (_, name), reader in sorted(counts.readers.items()):
        if reader.set_aside != reader.dead_letters:
            yield f"{name} counts {reader.set_aside} entries set aside of {reader.dead_letters}"
        if reader.resets != reader.applied:
            yield f"{name} counts {reader.resets} resets applied of {reader.applied}"
    sent = len(evidence.final.rides) - len(evidence.final.staged)
    if counts.sent != sent:
        yield f"the streamer counts {counts.sent} records sent of {sent}"
    if evidence.receipts:
        outcomes = [receipt.outcome for receipt in evidence.receipts.outcomes.values()]
        outcomes += (gone := deleted_outcomes(evidence))
        for name, counted in ((DELIVERED, counts.delivered), (DEAD, counts.dead)):
            if counted != outcomes.count(name):
                yield f"workers count {counted} receipts {name} of {outcomes.count(name)}"
        if counts.swept > (rides := len(evidence.final.rides) + len(gone)):
            yield f"workers count {counts.swept} rides swept up of {rides}"


def deleted_outcomes(evidence: Evidence) -> list[str | None]:
    """What the nemesis has deleted: each was decided once more."""
    final = evidence.nights.final if evidence.nights else ()
    return [drift.mark for drift in final if drift.kind == OUTCOME]


def readers_count_what_they_say(evidence: Evidence) -> Findings:
    """Gaps and what is in them, re-sends, and injected crashes."""
    for (kind, name), account in sorted(evidence.accounts.items()):
        counts = evidence.counts.readers.get((kind, name)) if evidence.counts else None
        if counts is None:
            yield f"{name} has counted nothing"
            continue
        said, taken = account.sum().counted, len(evidence.final.rides)
        if kind == "total" and said > taken and not (evidence.restores or counts.resets):
            yield f"{name} says that it counted {said} rides of {taken}"
        least, most = bounds(evidence, account, ledger=kind == "total")
        for what in Tally._fields:
            if what == "news":
                continue
            counted, low, high = (getattr(of, what) for of in (counts, least, most))
            if not low <= counted <= high:
                yield f"{name} counts {counted} {NAMES[what]}, and not {low} to {high}"


NAMES = {
    "gaps": "gaps healed",
    "rides": "rides healed",
    "metres": "m healed",
    "skipped": "re-sends skipped",
    "crashes": "crashes injected",
}


def no_total_is_called_wrong(evidence: Evidence) -> Findings:
    """The nightly job has none reset but those that the nemesis made wrong.

    `lab.chaos.nights_checker` looks for the reason of each.
    """
    explained = len(evidence.nights.resets) if evidence.nights else 0
    if evidence.counts and (asked := evidence.counts.resets_asked - explained):
        yield f"the nightly job has asked for {asked} resets"


def nothing_is_healed_that_the_log_told(evidence: Evidence) -> Findings:
    """Where nothing was taken from the log and nobody else wrote to it, there is no gap.

    This is no reader's own word: whatever it healed then, it invented.
    """
    if not evidence.keeps_log or evidence.restores or evidence.foreign or not evidence.counts:
        return
    for (_, name), reader in sorted(evidence.counts.readers.items()):
        if reader.gaps or reader.rides:
            yield f"{name} healed {reader.rides} rides in {reader.gaps} gaps of a whole log"


def bounds(evidence: Evidence, account: Account, *, ledger: bool) -> tuple[Tally, Tally]:
    """The least and the most that a reader can have counted.

    A total's lines are a ledger of all rides: what is missing in it was committed without a line.
    Each ride is healed once at most. Each gap has a ride, and a batch one gap more than entries.
    """
    said = account.sum()
    kept = account.sum(lambda at: _is_kept(evidence, at)) if evidence.restores else said
    least = kept._replace(crashes=max(0, kept.crashes - account.uncounted))
    rides = evidence.final.rides
    missing = max(0, len(rides) - (kept.counted if ledger else kept.rides))
    if not account.interruptions and not evidence.restores:
        missing = 0
    with localcontext(EXACT):
        unsaid_metres = sum(nlargest(missing, rides.values()), Decimal(0))
        metres = said.metres + unsaid_metres
        if not evidence.restores:
            metres = max(said.metres, min(metres, sum(rides.values(), Decimal(0))))
    unsaid = account.interruptions * evidence.batch_size
    return least, said._replace(
        gaps=said.gaps + min(missing, unsaid + account.interruptions),
        rides=said.rides + missing,
        metres=metres,
        skipped=said.skipped + unsaid,
    )


def _is_kept(evidence: Evidence, at: float) -> bool:
    """Whether no restore can have undone what was said at this moment, or counted after it."""
    return all(
        at + LATE < restore.began or at > restore.killed + LATE for restore in evidence.restores
    )


CLAIMS = (
    counts_agree_with_other_tables,
    readers_count_what_they_say,
    nothing_is_healed_that_the_log_told,
    no_total_is_called_wrong,
)
