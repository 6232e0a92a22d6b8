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

    The runs are spaced evenly, whatever the time between them; zero is in the middle, and labelled
    as the largest drift is. None: not compared in that run.
    """
    compared = [(run, float(metres)) for run, metres in enumerate(drifts) if metres is not None]
    largest = max((metres for _, metres in compared), key=abs, default=0.0)
    last = len(drifts) - 1
    places, size = max(last, FEWEST - 1) + 1, 3.5 if len(drifts) <= 2 * FEWEST else 1.8

    def x(run: int) -> float:
        return DRIFT.x((run + places - 1 - last + 0.5) / places)

    def y(metres: float) -> float:
        return DRIFT.y(0.5 + 0.4 * height(metres) / (abs(height(largest)) or 1))

    marks = [f'<path class="rule" d="M{DRIFT.left} {y(0):.1f}H{RIGHT}"/>']
    for run, metres in compared:
        if not metres:
            marks.append(f'<circle class="dot" cx="{x(run):.1f}" cy="{y(0):.1f}" r="{size}"/>')
            continue
        stem = f"M{x(run):.1f} {y(0):.1f}V{y(metres):.1f}"
        diamond = f"m0 {-size}l{size} {size} {-size} {size} {-size} {-size}Z"
        marks.append(f'<path class="stem" d="{stem}{diamond}"/>')
    for metres in {0.0, largest}:
        said = f"{metres:,.4g} m".replace("-", MINUS) if metres else "0"
        place = f'x="{DRIFT.left - 8}" y="{y(metres) + 4:.1f}"'
        marks.append(f'<text class="last" {place}>{said}</text>')
    shape = "%H:%M" if moments[0].date() == moments[last].date() else "%-d %b %Y"
    ticks = [(1.0, f"{moments[last]:{shape}}")]
    if last >= FEWEST / 2:
        ticks.insert(0, (0.0, f"{moments[0]:{shape}}"))
    return DRIFT.picture(marks, DRIFT.ticks(ticks))


def height(metres: float) -> float:
    """Logarithmic on both sides of zero: a millimetre is visible beside a thousand kilometres."""
    return copysign(log10(1 + abs(metres) * 1000), metres)
