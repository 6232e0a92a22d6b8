"""The report's charts: what was ridden by day, and each total's drift, run by run."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import copysign, log10

from markupsafe import Markup

from rocket_rides.charts import RIGHT, Frame, nice

FEWEST = 14  # days or runs that an axis has room for, so that a single bar does not fill it
SEPARATE = 62  # days up to which the bars have gaps
BY_MONTH = 140  # days beyond which the axis names months
BARS, DRIFT = Frame(), Frame(height=96, left=64, top=10, bottom=70)

Label = Callable[[float], str]


def per_day(values: Mapping[date, int | Decimal], label: Label) -> Markup:
    """Bars from zero; with many days they have no gaps and form an area."""
    last = max(values).toordinal()
    shown = max(last - min(values).toordinal() + 1, FEWEST)
    heights = {day.toordinal() - last + shown - 1: float(values[day]) for day in values}
    marks = dates(max(values), shown)
    pattern = "%-d %b" if shown <= BY_MONTH else "%b %Y"
    ticks = [(day.toordinal() - last + shown - 1, f"{day:{pattern}}") for day in marks]
    return _bars(heights, shown, 0.12 if shown <= SEPARATE else 0, ticks, label)


def _bars(
    heights: Mapping[int, float],
    places: int,
    gap: float,
    ticks: Sequence[tuple[float, str]],
    label: Label,
) -> Markup:
    """Bars at these of so many places, each with a gap at either side, in parts of its width."""
    top = nice(max(heights.values()))
    outline = []
    for place in sorted(heights):
        left, right = BARS.x((place + gap) / places), BARS.x((place + 1 - gap) / places)
        y = BARS.y(heights[place] / top)
        outline.append(f"M{left:.1f} {BARS.bottom}V{y:.1f}H{right:.1f}V{BARS.bottom}Z")
    # An area's outline keeps peaks visible that are thinner than a pixel.
    kind = "bar" if gap else "bar area"
    marks = [f'<path class="{kind}" d="{"".join(outline)}"/>']
    named = [((place + 0.5) / places, text) for place, text in ticks]
    return BARS.picture(BARS.axis(label(top)), marks, BARS.ticks(named))


def dates(last: date, shown: int) -> list[date]:
    """Up to five dates for the axis: the last day and some before it, or firsts of months."""
    if shown <= BY_MONTH:
        step = next(step for step in (3, 7, 14, 28) if shown <= 5 * step)
        return [last - timedelta(back) for back in range(0, min(shown, last.toordinal()), step)]
    shown = min(shown, last.toordinal())  # the calendar has no earlier days
    past = (last - timedelta(back) for back in range(shown))
    firsts = [day for day in past if day.day == 1]
    steps = (1, 2, 3, 6, *range(12, len(firsts) + 12, 12))
    step = next(step for step in steps if len(firsts) <= 5 * step)
    return [day for day in firsts if (12 * day.year + day.month - 1) % step == 0]


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
        said = length(at_most.get(at, 0))
        marks.append(f'<text class="last" x="{DRIFT.left - 8}" y="{y(at) + 4:.1f}">{said}</text>')
    shape = "%H:%M" if moments[0].date() == moments[last].date() else "%-d %b %Y"
    ticks = [(1.0, f"{moments[last]:{shape}}")]
    if last >= FEWEST / 2:
        ticks.insert(0, (0.0, f"{moments[0]:{shape}}"))
    return DRIFT.picture(marks, DRIFT.ticks(ticks))


def height(metres: float) -> float:
    """Logarithmic on both sides of zero: a millimetre is visible beside a thousand kilometres."""
    return copysign(log10(1 + abs(metres) * 1000), metres)


def short(number: float) -> str:
    """A number for an axis: 250, 1.5k, 2M."""
    size, sign = abs(number), "\N{MINUS SIGN}" if number < 0 else ""
    if size >= 1e12:
        return f"{sign}{size:.0e}"
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{sign}{size / unit:.4g}{letter}"
    return f"{sign}{size:.4g}"


def length(metres: float) -> str:
    """Metres for an axis: 1 mm, 2.5 m, 40 km."""
    if not metres:
        return "0"
    if abs(metres) >= 1000:
        digits = ",.0f" if abs(metres) >= 1e6 else ".4g"
        return (
            f"{metres / 1000:{digits}} km".replace("-", "\N{MINUS SIGN}")
            if abs(metres) < 1e9
            else f"{short(metres / 1e6)} Mm"
        )
    return f"{short(metres)} m" if abs(metres) >= 1 else f"{short(metres * 1000)} mm"
