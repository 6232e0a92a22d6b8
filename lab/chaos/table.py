"""The table of a run, for a person."""

from collections import Counter
from collections.abc import Iterable

from lab.chaos.books.clients import double, lost, undone
from lab.chaos.books.receipts import DEAD, DELIVERED, accepted
from lab.chaos.evidence import Evidence
from lab.chaos.outcome import Outcome


def table(outcome: Outcome) -> str:
    """The figures of a run in Markdown, one per line."""
    rows = figures(outcome)
    width = max(map(len, rows))
    lines = [f"| {name:<{width}} | {value} |" for name, value in rows.items()]
    return "\n".join([f"| {'what':<{width}} | figure |", f"| {'-' * width} | --- |", *lines])


def figures(outcome: Outcome) -> dict[str, str]:
    """By name, in words."""
    play, evidence = outcome.play, outcome.evidence
    answered = sum(1 for ask in evidence.asks if ask.answers)
    half = sum(1 for ask in evidence.asks if not ask.whole)
    struck = Counter(fault.kind for fault in play.nemesis.struck)
    met = evidence.final.met
    return {
        "rides": f"{len(evidence.final.rides):,} ({answered:,} answered); "
        f"{half:,} more were sent by half or rolled back",
        "faults": f"{struck.total()}: {counted(struck.elements())}",
        "faults that could not be injected": ", ".join(sorted(play.nemesis.moot - struck.keys()))
        or "none",
        "steps that the specification allowed": counted(outcome.verdict.met.elements()),
        "healed, by all totals": f"{met.gaps:,} gaps, of {met.rides:,} rides",
        "skipped, by all totals": f"{met.skipped:,} sent again, {met.not_ours:,} untrue",
        "recovery after the last fault": f"{play.recovery:.1f} s",
        "receipts delivered": receipts(evidence),
        "nightly runs": counted(night.end for night in evidence.nights),
        "undone by restores and fail-overs": f"{undone(evidence):,}",
        "lost": f"{len(lost(evidence))}",
        "double": f"{len(double(evidence))}",
    }


def counted(kinds: Iterable[str]) -> str:
    """How many there are of each kind."""
    return ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(kinds).items())) or "none"


def receipts(evidence: Evidence) -> str:
    """What became of the receipts, in words."""
    outcomes, times = Counter(evidence.final.outcomes.values()), accepted(evidence)
    again = times.total() - len(times)
    return (
        f"{outcomes[DELIVERED]:,}, {again:,} repeated after they were accepted; "
        f"{outcomes[DEAD]:,} dead as meant"
    )
