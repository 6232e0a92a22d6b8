"""The table that shows a person how a run went."""

from collections import Counter
from collections.abc import Iterable, Sequence, Sized
from statistics import median

from lab.chaos.checker import double, true_total
from lab.chaos.evidence import Evidence
from lab.chaos.log_checker import Story
from lab.chaos.logs import Said
from lab.chaos.losses import lost, undone
from lab.chaos.minutes_checker import every_minute_is_exact
from lab.chaos.nights_evidence import ENDS_IN_ORDER
from lab.chaos.nights_seen import was_found
from lab.chaos.play import Outcome
from lab.chaos.receipts_checker import DEAD, DELIVERED, Deliveries
from lab.chaos.recovery import Recovery


def table(rows: dict[str, str]) -> str:
    """Figures as a Markdown table, one per line."""
    width = max(map(len, rows))
    lines = [f"| {name:<{width}} | {value} |" for name, value in rows.items()]
    return "\n".join([f"| {'what':<{width}} | figure |", f"| {'-' * width} | --- |", *lines])


def figures(outcome: Outcome) -> dict[str, str]:
    """The figures of a run, in words."""
    evidence, said = outcome.evidence, outcome.said
    asks = evidence.asks
    answered = sum(1 for ask in asks if ask.answers)
    half = sum(1 for ask in asks if not ask.whole)
    story = Story(evidence)
    untrue = story.reasons()
    restored, failed_over = undone(evidence, by_failover=False), undone(evidence, by_failover=True)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.faults.items()))
    never = ", ".join(sorted(outcome.moot.keys() - outcome.faults))
    others = ", ".join(f"{n:,} {why}" for why, n in sorted(untrue.items()))
    rides = len(evidence.final.rides)
    totals = [standing.total for standing in evidence.final.consumers.values()]
    exact = totals.count(true_total(evidence))
    return {
        "rides": f"{rides:,} ({answered:,} answered); {half:,} more were half sent or rolled back",
        "rides answered a second, outages included": f"{answered / outcome.played:.0f}",
        "seconds until everything had settled": f"{outcome.seconds:.0f}",
        "seconds of the check": f"{outcome.checked:.0f}",
        "memory of chaos' own processes": f"{outcome.memory / 2**20:,.0f} MB",
        "faults": f"{outcome.faults.total()}: {kinds}",
        "faults that could not be injected": never or "none",
        "injected consumer crashes": f"{said.crashes:,}",
        "re-sends skipped, by all consumers": f"{said.skipped:,}",
        "gaps healed, by all consumers": f"{said.gaps:,}, of {said.healed:,} rides",
        "true log entries seen by the onlooker": f"{len(story.true):,}",
        "untrue log entries": others or "none",
        "recoveries": chains(outcome.recoveries),
        "slowest recovery": slowest(outcome.recoveries),
        "receipts delivered": receipts(evidence),
        "minutes": minutes(evidence, said),
        "nightly runs": nights(evidence),
        "drifts": drifts(evidence),
        "exact totals": f"{exact} of {len(evidence.names)}",
        "lost": f"{len(lost(evidence))}",
        "lost by restores": lost_of(*restored, "their backups"),
        "lost by asynchronous fail-overs": lost_of(*failed_over, "their standbys fell behind"),
        "double": f"{len(double(evidence))}",
    }


def lost_of(gone: Sized, exposed: Sized, since: str) -> str:
    """What Postgres' past took along, in words."""
    return f"{len(gone):,} of {len(exposed):,} answered since {since}"


def minutes(evidence: Evidence, said: Said) -> str:
    """How the rollup went, in words."""
    rows = len(evidence.rollup.minutes) if evidence.rollup else 0
    wrong = sum(1 for _ in every_minute_is_exact(evidence))
    folded = f"{said.marked:,} marks folded into {said.computed:,} computations"
    return f"{rows:,}, {wrong:,} of them wrong; {folded}"


def nights(evidence: Evidence) -> str:
    """How the runs of the nightly job ended, in words."""
    if evidence.nights is None:
        return "none"
    ends = Counter(night.end for night in evidence.nights.nights)
    told = ", ".join(f"{ends[end]:,} {end}" for end in ENDS_IN_ORDER if ends[end])
    seconds = [night.ended - night.began for night in evidence.nights.nights if night.finished]
    return f"{told}; {median(seconds):.0f} s in the middle" if seconds else told


def drifts(evidence: Evidence) -> str:
    """What became of the drifts that were made, in words."""
    if (known := evidence.nights) is None or not known.made:
        return "none"
    kinds = Counter(drift.kind for drift in known.made)
    found = sum(was_found(evidence, drift) for drift in known.made)
    repaired = sum(not drift.is_there for drift in known.final)
    undone = len(known.made) - len(known.final)
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    return (
        f"{len(known.made):,} made ({told}), {found:,} reported,"
        f" {repaired:,} repaired, {undone:,} undone by restores or fail-overs"
    )


def receipts(evidence: Evidence) -> str:
    """What became of the receipts, in words."""
    deliveries = Deliveries(evidence)
    accepted = deliveries.accepted()
    again = sum(accepted.values()) - sum(map(bool, accepted.values()))
    failed = sum(not delivery.accepted for delivery in deliveries.true)
    final = evidence.receipts.outcomes.values() if evidence.receipts else ()
    outcomes = Counter(receipt.outcome for receipt in final)
    return (
        f"{outcomes[DELIVERED]:,}, {again:,} repeated after they were accepted; "
        f"{outcomes[DEAD]:,} dead as meant; {failed:,} attempts failed; "
        f"{len(deliveries.others):,} from lost pasts"
    )


def chains(recoveries: Sequence[Recovery]) -> str:
    """How many there were, and of how many faults, in words."""
    faults = sum(recovery.faults for recovery in recoveries)
    lasted = max((recovery.lasted for recovery in recoveries), default=0)
    return f"{len(recoveries):,}, from {faults:,} faults; the longest chain took {lasted:.0f} s"


def slowest(recoveries: Iterable[Recovery]) -> str:
    """The slowest recovery, in words."""
    worst = max(recoveries, default=None)
    return f"{worst.seconds:.1f} s, after {worst.after}" if worst else "none"
