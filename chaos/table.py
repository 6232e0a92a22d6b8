"""How a run went, for a person."""

from collections.abc import Iterable

from chaos.checker import double, true_total
from chaos.log_checker import Story
from chaos.losses import lost, undone
from chaos.play import Outcome
from chaos.recovery import Recovery


def table(outcome: Outcome) -> str:
    """The figures of a run, a line each, in Markdown."""
    evidence, said = outcome.evidence, outcome.said
    asks = evidence.asks
    answered = sum(1 for ask in asks if ask.answers)
    half = sum(1 for ask in asks if not ask.whole)
    story = Story(evidence)
    gone, exposed = undone(evidence)
    kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(outcome.faults.items()))
    rides = len(evidence.books.rides)
    totals = [standing.total for standing in evidence.books.consumers.values()]
    exact = totals.count(true_total(evidence))
    rows = {
        "rides": f"{rides:,} ({answered:,} answered; {half:,} half sent or rolled back are none)",
        "seconds, until all had settled": f"{outcome.seconds:.0f}",
        "faults": f"{outcome.faults.total()}: {kinds}",
        "injected consumer crashes": f"{said.crashes:,}",
        "re-sends skipped, by all consumers": f"{said.skipped:,}",
        "gaps healed, by all consumers": f"{said.gaps:,}, of {said.healed:,} rides",
        "true log entries seen by the onlooker": f"{len(story.true):,}",
        "others": ", ".join(f"{n:,} {why}" for why, n in sorted(story.reasons().items())),
        "slowest recovery": slowest(r for r in outcome.recoveries if not r.disturbed),
        "the same with other faults meanwhile": slowest(
            r for r in outcome.recoveries if r.disturbed
        ),
        "exact totals": f"{exact} of {len(evidence.names)}",
        "lost": f"{len(lost(evidence))}",
        "lost by restores": f"{len(gone):,} of {len(exposed):,} answered since their backups",
        "double": f"{len(double(evidence))}",
    }
    width = max(map(len, rows))
    lines = [f"| {name:<{width}} | {value} |" for name, value in rows.items()]
    return "\n".join([f"| {'what':<{width}} | figure |", f"| {'-' * width} | --- |", *lines])


def slowest(recoveries: Iterable[Recovery]) -> str:
    """The longest, in words."""
    found = max(recoveries, default=None)
    return f"{found.seconds:.1f} s, after {found.after}" if found else "none"
