"""The outcome of a run, in sentences that the terminal and the page share."""

from collections.abc import Iterator

from analytics.balances import AGREES, WAITS, number_in
from analytics.findings import CLOSING_WRONG, TOTAL_HELD, WAREHOUSE_CHANGED, Finding
from analytics.result import Compared, Result
from analytics.rows import Differing, Fields
from rocket_rides.words import command, metres, of_rides
from unified_log.words import count, number

NOBODY_HAS_IT = "no such ride"


def outcome(result: Result, consumer: Compared) -> str:
    """The outcome of a consumer's comparison, what happens next, and what it holds out."""
    held_out = ""
    if rides := consumer.held_out_rides:
        held_out = f"; held out: {count(rides, 'ride')}, {metres(consumer.held_out_distance)} m"
    return f"{_outcome(result, consumer)}{held_out}"


def _outcome(result: Result, consumer: Compared) -> str:
    if not consumer.wrong:
        return "recounts" if consumer.differs else "agrees"
    what = "stands past every record sent" if consumer.stray else "wrong"
    if not consumer.stray and consumer.drift == 0:
        what = of_rides(consumer.rides_off)
    if consumer.name in result.resets:
        return f"{what}: reset requested"
    if any(finding.kind == TOTAL_HELD for finding in result.findings) and result.repairing:
        return f"{what}: held"
    if consumer.stray:
        return what  # there is no exact total up to a record that was never sent
    return f"{what}: not repaired" if result.repairing else f"{what}: not repaired (--check)"


def ways_out(result: Result) -> Iterator[str]:
    """What a person can do about what is held."""
    if not result.held:
        return
    kept = "" if result.published or not result.repairing else ", and the warehouse is as it was"
    yield f"Nothing that is held was changed{kept}. Find out who did this. Then,"
    run, of_another = (result.run, "") if result.run else ("RUN", "  # of a run without --check")
    doubted = {number_in(each.key) for each in result.held if each.part == "closings"}
    closings = doubted & {each.id for each in result.closings}  # others are gone
    if any(finding.kind != CLOSING_WRONG for finding in result.held):
        yield "if Postgres is right:"
        yield f"  {command('analytics.approve')} {run} --reason '...'{of_another}"
        if waiting := {each.id for each in result.closings if each.outcome == WAITS}:
            yield f"  {_reopening(min(waiting), 'once a run has acted on that; and ')}"
            closings = {each for each in closings if each < min(waiting)}
    if closings:
        yield "if the closing is wrong:"
        yield f"  {_reopening(min(closings))}"
    if any(finding.rides for finding in result.held):
        yield "if the warehouse is right, this prints the rides as they were:"
        yield f"  {command('analytics.approve')} {run} --put-back{of_another}"


def _reopening(first: int, when: str = "and ") -> str:
    return f"{command('analytics.close')} --reopen {first} --reason '...'  # {when}all later ones"


def closed(result: Result) -> str:
    """How many closings agree, and from where on the run proves the totals; "" without any."""
    if not (there := len(result.closings)):
        return ""
    whole, agree = count(there, "closing"), [each.outcome for each in result.closings].count(AGREES)
    whose = (
        f"{whole} agree{'s' if there == 1 else ''}"
        if agree == there
        else f"{agree} of {whole} agree"
    )
    since = result.proves_from
    where = f"closing {since.id}, position {number(since.position)}," if since else "the first ride"
    return f"{whose}; the totals are proven from {where} on."


def rides_of(finding: Finding) -> Iterator[str]:
    """The rides that a finding names, as both sides have them."""
    for ride in finding.rides:
        yield f"ride {ride.id}: {_both(ride)}"
    if (more := finding.differing - len(finding.rides)) > 0:
        yield f"and {number(more)} more"


def _both(ride: Differing) -> str:
    return f"Postgres {_said(ride.postgres)}; warehouse {_said(ride.warehouse)}"


def _said(fields: Fields | None) -> str:
    if fields is None:
        return NOBODY_HAS_IT
    at = fields.created_at.isoformat(sep=" ") if fields.created_at else "no time"
    distance = f"{metres(fields.distance)} m" if fields.distance is not None else "no distance"
    return f"{distance} at {at}"


def verdict(result: Result, *clauses: str) -> str:
    """The whole run in one sentence, which ends with the `clauses` on all but the totals."""
    parts = list[str]()
    if held := len(result.held):
        parts.append(
            f"{count(held, 'finding')} {'is' if held == 1 else 'are'} held until somebody decides"
        )
    if result.approval is not None:
        parts.append(f"what run {result.approval} held was approved, and is taken from Postgres")
    if any(finding.kind == WAREHOUSE_CHANGED for finding in result.findings):
        done = "was read again" if result.published else "is to be read again"
        parts.append(f"the warehouse had been changed, and {done}")
    sentence = "; ".join([*parts, _of_totals(result), *clauses]) + "."
    return sentence[0].upper() + sentence[1:]


def _of_totals(result: Result) -> str:
    total, wrong = len(result.consumers), [c for c in result.consumers if c.wrong]
    reset = sum(consumer.name in result.resets for consumer in wrong)
    whose = f"{len(wrong)} of {total} consumers" if total > 1 else "the only consumer"
    are, were = ("is", "was") if len(wrong) == 1 else ("are", "were")
    if not wrong:
        return _of_right_totals(result)
    if reset == len(wrong):
        return f"{whose} {were} wrong and will be reset"
    if not result.repairing:
        return f"{whose} {are} wrong; nothing was repaired (--check)"
    will = f"{reset} of them will be reset" if reset else "none will be reset"
    return f"{whose} {are} wrong; {will}"


def _of_right_totals(result: Result) -> str:
    total, recounting = len(result.consumers), sum(c.differs for c in result.consumers)
    if not total:
        return "there is no consumer to compare"
    if recounting:
        whose = f"{recounting} of {total} totals" if total > 1 else "the only total"
        return f"{whose} {'recounts' if recounting == 1 else 'recount'}"
    if any(consumer.held_out_rides for consumer in result.consumers):
        return "all totals agree, but for what is held out"
    return "all totals agree"
