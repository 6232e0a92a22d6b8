"""The report's charts: each total's drift, run by run."""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from math import copysign, log10

from markupsafe import Markup

from rocket_rides.charts import RIGHT, Frame
from rocket_rides.words import MINUS

FEWEST = 14  # runs that an axis has room for, so that a single one is not in the middle of it
DRIFT = Frame(height=96, left=64, top=10, bottom=70)


def drift(moments: Sequence[datetime], drifts: Sequence[Decimal | None]) -> Markup:
    """A dot on the line for each run in which the total was right, a red stem where it was wrong.

    The runs are spaced evenly, whatever the time between them. None: not compared in that run.
    """
    compared = [(run, float(metres)) for run, metres in enumerate(drifts) if metres is not None]
    wrong = {run: metres for run, metres in compared if metres}
    heights = {run: height(metres) for run, metres in wrong.items()}
    low, high = min([0, *heights.values()]), max([0, *heights.values()])
    span, last = (high - low) or 1, len(drifts) - 1
    places, size = max(last, FEWEST - 1) + 1, 3.5 if len(drifts) <= 2 * FEWEST else 1.8

    def x(run: int) -> float:
        return DRIFT.x((run + places - 1 - last + 0.5) / places)

    def y(at: float) -> float:
        return DRIFT.y((at - low + span / 4) / (1.5 * span))

    marks = [f'<path class="rule" d="M{DRIFT.left} {y(0):.1f}H{RIGHT}"/>']
    for run, _ in compared:
        if run not in wrong:
            marks.append(f'<circle class="dot" cx="{x(run):.1f}" cy="{y(0):.1f}" r="{size}"/>')
            continue
        at = y(heights[run])
        stem = f"M{x(run):.1f} {y(0):.1f}V{at:.1f}"
        diamond = f"m0 {-size}l{size} {size} {-size} {size} {-size} {-size}Z"
        marks.append(f'<path class="stem" d="{stem}{diamond}"/>')
    # Zero and the largest drift on either side are labelled, unless the labels would overlap.
    at_most = {at: wrong[run] for run, at in heights.items()}
    for at in {0.0, *(end for end in (low, high) if abs(end) > span * 0.4)}:
        metres = at_most.get(at, 0)
        said = f"{metres:,.4g} m".replace("-", MINUS) if metres else "0"
        marks.append(f'<text class="last" x="{DRIFT.left - 8}" y="{y(at) + 4:.1f}">{said}</text>')
    shape = "%H:%M" if moments[0].date() == moments[last].date() else "%-d %b %Y"
    ticks = [(1.0, f"{moments[last]:{shape}}")]
    if last >= FEWEST / 2:
        ticks.insert(0, (0.0, f"{moments[0]:{shape}}"))
    return DRIFT.picture(marks, DRIFT.ticks(ticks))


def height(metres: float) -> float:
    """Logarithmic on both sides of zero: a millimetre is visible beside a thousand kilometres."""
    return copysign(log10(1 + abs(metres) * 1000), metres)
