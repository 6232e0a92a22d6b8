"""The table of a run, for a person."""

from collections import Counter
from collections.abc import Iterable
from statistics import median

from lab.chaos.books.clients import double, lost, undone
from lab.chaos.books.receipts import DEAD, DELIVERED, accepted
from lab.chaos.evidence import Evidence
from lab.chaos.outcome import Outcome
from lab.chaos.recovery import Recovery


def table(rows: dict[str, str]) -> str:
    """Figures as a Markdown table, one per line."""
    width = max(map(len, rows))
    lines = [f"| {name:<{width}} | {value} |" for name, value in rows.items()]
    return "\n".join([f"| {'what':<{width}} | figure |", f"| {'-' * width} | --- |", *lines])


def figures(outcome: Outcome) -> dict[str, str]:
    """The figures of a run, in words."""
    play, evidence = outcome.play, outcome.evidence
    answered = sum(1 for ask in evidence.asks if ask.answers)
    half = sum(1 for ask in evidence.asks if not ask.whole)
    struck = Counter(fault.kind for fault in play.nemesis.struck)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(struck.items()))
    drifts = play.scene.drifts.made if play.scene.drifts else 0
    met = evidence.final.met
    return {
        "rides": f"{len(evidence.final.rides):,} ({answered:,} answered); "
        f"{half:,} more were sent by half or rolled back",
        "rides answered a second, outages included": f"{answered / play.played:.0f}",
        "seconds until everything had settled": f"{play.seconds:.0f}",
        "faults": f"{struck.total()}: {kinds}",
        "faults that could not be injected": ", ".join(sorted(play.nemesis.moot - struck.keys()))
        or "none",
        "gaps healed, by all totals": f"{met.gaps:,}, of {met.rides:,} rides",
        "re-sends skipped, by all totals": f"{met.skipped:,}",
        "foreign or uncommitted entries read, by all totals": f"{met.unbelieved:,}",
        "slowest recovery": slowest(play.recoveries.all),
        "receipts delivered": receipts(evidence),
        "nightly runs": nights(evidence),
        "drifts": f"{drifts:,}",
        "looks at the tables": f"{play.tables.looks:,}",
        "undone by restores and fail-overs": f"{undone(evidence):,}",
        "lost": f"{len(lost(evidence))}",
        "double": f"{len(double(evidence))}",
    }


def nights(evidence: Evidence) -> str:
    """How many runs of the nightly job ended in which way, in words."""
    ends = Counter(night.end for night in evidence.nights)
    told = ", ".join(f"{count:,} {end}" for end, count in sorted(ends.items()))
    seconds = [night.seconds for night in evidence.nights if night.finished]
    return f"{told}; {median(seconds):.0f} s in the middle" if seconds else told or "none"


def receipts(evidence: Evidence) -> str:
    """What became of the receipts, in words."""
    outcomes, times = Counter(evidence.final.outcomes.values()), accepted(evidence)
    again = times.total() - len(times)
    return (
        f"{outcomes[DELIVERED]:,}, {again:,} repeated after they were accepted; "
        f"{outcomes[DEAD]:,} dead as meant"
    )


def slowest(recoveries: Iterable[Recovery]) -> str:
    """The slowest recovery, in words."""
    worst = max(recoveries, default=None)
    return f"{worst.seconds:.1f} s, after {worst.after}" if worst else "none"
