"""What a drill saw in each step, what contradicts the guarantee, and the table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from lab.chaos.clients import Refused
from lab.progress import table

# Seconds, beyond an unchanged roll's. Half of a step's usual time: a total that stops at the newer
# schema, and goes on with the newer code, stands still for longer.
LONGER = 5.0
# What no roll may cost, however much the unchanged one does.
LONGEST = 20.0  # seconds that a total stands still; some five are usual, on a busy machine
MOST_REFUSED = 0.01  # for each ride that is taken meanwhile; none is usual


@dataclass
class Step:
    name: str
    restarts: int = 0  # of processes
    seconds: float = 0.0
    rides: int = 0  # that were answered
    refused: list[Refused] = field(default_factory=list)
    pauses: dict[str, float] = field(default_factory=dict)  # the longest of each total, in seconds


def findings(steps: Sequence[Step]) -> Iterator[str]:
    """A sentence for each violation; the first step is the unchanged roll, with which all compare.

    A step that restarts nothing must cost nothing, and an unchanged roll little. Without steps, the
    fleet has not come up.
    """
    if not steps:
        return
    unchanged = steps[0]
    patience = min(max(unchanged.pauses.values(), default=0) + LONGER, LONGEST)
    most = min(len(unchanged.refused), int(unchanged.rides * MOST_REFUSED))
    for step in steps:
        allowed = most if step.restarts else 0
        if len(step.refused) > allowed:
            whys = "; ".join(sorted({refused.why for refused in step.refused}))
            many = f"{len(step.refused)} requests were refused, where {allowed} may be"
            yield f"{step.name}: {many}: {whys}"
        if not step.rides:
            yield f"{step.name}: no ride was taken"
        for total, seconds in step.pauses.items():
            if seconds > patience:
                yield f"{step.name}: {total} stood still for {seconds:.1f} s"


def shown(steps: Sequence[Step]) -> str:
    totals = sorted({total for step in steps for total in step.pauses})
    header = ["step", "restarts", "seconds", "rides", "refused", *totals]
    rows: list[list[object]] = []
    for step in steps:
        pauses = [f"{step.pauses[total]:.1f} s" for total in totals]
        figures = [f"{step.seconds:.0f}", f"{step.rides:,}", len(step.refused)]
        rows.append([step.name, step.restarts, *figures, *pauses])
    return table(header, rows)
