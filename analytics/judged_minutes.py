"""The minutes of the rollup that are not the sum of their rides: who is right, and what is held."""

from collections.abc import Sequence
from datetime import UTC

from analytics import findings
from analytics.findings import Finding
from analytics.judgement import Judgement
from analytics.look import Look
from analytics.result import NOTHING, Mismatch, RollupVerdict, Tally, WrongMinute
from analytics.votes import Right
from unified_log.words import count

MOST_SUMS = 100_000  # of the minutes' differences that are looked at: in a second or so


def judged(
    judgement: Judgement,
    verdict: RollupVerdict,
    mismatches: Sequence[Mismatch],
    outside: bool,
) -> tuple[list[WrongMinute], list[Finding]]:
    """The minutes to be computed anew, and what is found of them.

    Where the warehouse has other rides of a minute, whoever is right of its block decides. What
    is too much in some minutes and missing in others was perhaps moved in Postgres, and no
    total knows of times. So was a ride too much if one is `outside` of all minutes, or some of
    these are set aside.
    """
    settled = judgement.of(Right.POSTGRES)
    open_ = [m for m in mismatches if not any(_touch(m, look) for look in settled)]
    found = [
        findings.of_minute(mismatch)
        for mismatch in open_
        if not any(_touch(mismatch, look) for look in judgement.held_looks)
    ]
    unsettled = {mismatch.minute for mismatch in open_}
    wrong = [each for each in verdict.wrong if each.minute not in unsettled]
    # Also where the warehouse is off by the same, or a block that is settled has rides of a minute.
    days = {day for look in judgement.held_looks for day in look.differ.days}
    wrong = [each for each in wrong if each.minute.astimezone(UTC).date() not in days]
    if not wrong:
        return [], found
    # Without any total there is nobody else to ask.
    is_confirmed = (
        judgement.approved
        or not judgement.compared
        or (verdict.upto <= judgement.confirmed and not judgement.is_suspect)
    )
    unseen = outside or verdict.set_aside
    is_gone = unseen and any(_off(each).rides > 0 for each in wrong)
    # What is missing here may be in a minute that waits for what is held.
    waits = len(wrong) < len(verdict.wrong)
    is_moved = (is_gone or waits or _cancel([*wrong, *verdict.later])) and not judgement.approved
    held = not judgement.is_proven or not is_confirmed or is_moved
    kind = findings.MINUTES_HELD if held else findings.MINUTES_WRONG
    which = f"{wrong[0].minute:%Y-%m-%d %H:%M} UTC"
    minutes = count(len(wrong), "minute")
    about = f"{minutes} of the rollup with another sum than that of the rides, from {which} on"
    key = " ".join(f"{each.minute} {each.exact} {each.rolled_up}" for each in wrong)
    if not held:
        return wrong, [*found, Finding(kind, about, key=key)]
    again = sorted({each.minute.astimezone(UTC).date() for each in wrong})
    return [], [*found, Finding(kind, about, True, key, days=tuple(again))]


def _cancel(wrong: Sequence[WrongMinute]) -> bool:
    """Whether what some of the minutes have too much is what others lack; True if too many may."""
    offs = [_off(each) for each in wrong]
    if all(min(of) >= 0 or max(of) <= 0 for of in zip(*offs, strict=True)):
        return False
    sums, looked_at = set[Tally](), 0
    for off in offs:
        looked_at += len(sums)
        sums |= {off, *(off.plus(other) for other in sums)}
        if NOTHING in sums or looked_at > MOST_SUMS:
            return True
    return False


def _off(minute: WrongMinute) -> Tally:
    has, exact = minute.rolled_up or NOTHING, minute.exact
    return has.plus(Tally(-exact.rides, -exact.distance))


def _touch(mismatch: Mismatch, look: Look) -> bool:
    """Whether a minute's rides lie in a block that was looked at."""
    return (
        mismatch.after < look.known
        and look.after < mismatch.upto
        and (look.postgres != look.warehouse)
    )
