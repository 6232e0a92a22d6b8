"""The table that shows a person how a run went."""

from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from decimal import Decimal, localcontext
from statistics import median

from lab.chaos.books.clients import double
from lab.chaos.books.log import Story
from lab.chaos.books.losses import lost, undone
from lab.chaos.books.receipts import DEAD, DELIVERED, Deliveries
from lab.chaos.evidence import Evidence, Healed
from lab.chaos.nights import AGREED, COULD_NOT_RUN, DRIFTED, FAILED, KILLED
from lab.chaos.outcome import Outcome
from lab.chaos.recovery import Recovery
from rocket_rides.distance import EXACT


def table(rows: dict[str, str]) -> str:
    """Figures as a Markdown table, one per line."""
    width = max(map(len, rows))
    lines = [f"| {name:<{width}} | {value} |" for name, value in rows.items()]
    return "\n".join([f"| {'what':<{width}} | figure |", f"| {'-' * width} | --- |", *lines])


def figures(outcome: Outcome) -> dict[str, str]:
    """The figures of a run, in words."""
    evidence = outcome.evidence
    asks = evidence.asks
    answered = sum(1 for ask in asks if ask.answers)
    half = sum(1 for ask in asks if not ask.whole)
    story = Story(evidence)
    untrue = story.reasons()
    restored, failed_over = undone(evidence, by_failover=False), undone(evidence, by_failover=True)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.faults.items()))
    never = ", ".join(sorted(outcome.moot - outcome.faults.keys()))
    others = ", ".join(f"{n:,} {why}" for why, n in sorted(untrue.items()))
    rides = len(evidence.final.rides)
    totals = evidence.final.totals.values()
    exact = sum(total == true_total(evidence) for total in totals)
    healed = [sum(counts) for counts in zip(*evidence.final.healed.values(), strict=True)]
    said = Healed(*(healed or [0] * 4))
    return {
        "rides": f"{rides:,} ({answered:,} answered); {half:,} more were half sent or rolled back",
        "rides answered a second, outages included": f"{answered / outcome.played:.0f}",
        "seconds until everything had settled": f"{outcome.seconds:.0f}",
        "seconds of the check": f"{outcome.checked:.0f}",
        "faults": f"{outcome.faults.total()}: {kinds}",
        "faults that could not be injected": never or "none",
        "crashes injected into totals": f"{said.crashes:,}",
        "re-sends skipped, by all totals": f"{said.skipped:,}",
        "gaps healed, by all totals": f"{said.gaps:,}, of {said.rides:,} rides",
        "true log entries seen by the onlooker": f"{len(story.true):,}",
        "untrue log entries": others or "none",
        "recoveries": chains(outcome.recoveries),
        "slowest recovery": slowest(outcome.recoveries),
        "receipts delivered": receipts(evidence),
        "nightly runs": nights(evidence),
        "drifts": f"{outcome.drifts:,}",
        "looks at the tables": f"{outcome.looks:,}",
        "exact totals": f"{exact} of {len(evidence.final.totals)}",
        "lost": f"{len(lost(evidence))}",
        "lost by restores": lost_of(*restored, "their backups"),
        "lost by asynchronous fail-overs": lost_of(*failed_over, "their standbys fell behind"),
        "double": f"{len(double(evidence))}",
    }


def true_total(evidence: Evidence) -> Decimal:
    """The exact sum of all rides, in metres."""
    with localcontext(EXACT):
        return sum(evidence.final.rides.values(), Decimal(0))


def lost_of(gone: Sized, exposed: Sized, since: str) -> str:
    """What Postgres' past took along, in words."""
    return f"{len(gone):,} of {len(exposed):,} answered since {since}"


def nights(evidence: Evidence) -> str:
    """How the runs of the nightly job ended, in words."""
    ends = Counter(night.end for night in evidence.nights.all)
    in_order = (AGREED, DRIFTED, KILLED, COULD_NOT_RUN, FAILED)
    told = ", ".join(f"{ends[end]:,} {end}" for end in in_order if ends[end])
    seconds = [night.seconds for night in evidence.nights.all if night.finished]
    return f"{told}; {median(seconds):.0f} s in the middle" if seconds else told or "none"


def receipts(evidence: Evidence) -> str:
    """What became of the receipts, in words."""
    deliveries = Deliveries(evidence)
    accepted = deliveries.accepted()
    again = sum(accepted.values()) - sum(map(bool, accepted.values()))
    failed = sum(not delivery.accepted for delivery in deliveries.true)
    outcomes = Counter(receipt.outcome for receipt in evidence.receipts.values())
    return (
        f"{outcomes[DELIVERED]:,}, {again:,} repeated after they were accepted; "
        f"{outcomes[DEAD]:,} dead as meant; {failed:,} attempts failed; "
        f"{len(deliveries.others):,} from lost pasts"
    )


def chains(recoveries: Sequence[Recovery]) -> str:
    """How many there were, and of how many faults, in words."""
    faults = sum(recovery.faults for recovery in recoveries)
    return f"{len(recoveries):,}, from {faults:,} faults"


def slowest(recoveries: Iterable[Recovery]) -> str:
    """The slowest recovery, in words."""
    worst = max(recoveries, default=None)
    return f"{worst.seconds:.1f} s, after {worst.after}" if worst else "none"
