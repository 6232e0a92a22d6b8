"""The page's charts: SVG that takes its colours and its font from the page around it.

They are 440 units wide, with text of 12 units, and so stay readable on a telephone and at half the
width of a page. Floats are only for drawing: nothing is added up in them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from io import StringIO
from math import copysign, log10
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 440
LEFT, RIGHT = 0.155, 0.955  # the same in every chart, so that they line up
FEWEST = 14  # days or runs that an axis has room for, so that a single bar does not fill it
SEPARATE = 62  # days up to which the bars have gaps
BY_MONTH = 140  # days beyond which the axis names months
# Matplotlib has no CSS variables: it draws in these colours, which are then replaced.
SOFT, RULE, ACCENT, WRONG = "#010203", "#020304", "#030405", "#040506"
VARIABLES = {SOFT: "soft", RULE: "rule", ACCENT: "accent", WRONG: "wrong"}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "font.size": 12,
    "xtick.color": RULE,
    "xtick.labelcolor": SOFT,
    "ytick.left": False,
    "ytick.labelcolor": SOFT,
    "axes.edgecolor": RULE,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.axisbelow": True,
    "grid.color": RULE,
}
METADATA = ("Date", "Creator", "Format", "Type")  # would differ from run to run, or say nothing


def per_day(values: Mapping[date, int | Decimal], label: Callable[[float], str]) -> Markup:
    """Bars from zero; with many days they have no gaps and form an area."""
    days = sorted(values)
    shown = max((days[-1] - days[0]).days + 1, FEWEST)
    half = 0.38 if shown <= SEPARATE else 0.5

    def draw(axes: "Axes") -> None:
        _bars(axes, {day.toordinal(): float(values[day]) for day in days}, half, label)
        last = days[-1].toordinal()
        axes.set_xlim(last - shown + 0.4, last + 0.6)
        marks = dates(days[-1], shown)
        pattern = "%-d %b" if shown <= BY_MONTH else "%b %Y"
        axes.set_xticks([day.toordinal() for day in marks], [f"{day:{pattern}}" for day in marks])

    return _svg(label.__name__, 170, draw)


def per_hour(values: Mapping[datetime, int | Decimal], label: Callable[[float], str]) -> Markup:
    """The same for the hours of a few days, given by their beginning: an area from zero."""
    midnight = min(values).replace(hour=0)

    def at(hour: datetime) -> int:
        return int((hour - midnight) / timedelta(hours=1))

    def draw(axes: "Axes") -> None:
        _bars(axes, {at(hour): float(values[hour]) for hour in sorted(values)}, 0.5, label)
        days = at(max(values)) // 24 + 1
        axes.set_xlim(-0.6, 24 * days - 0.4)
        noons = [(24 * day + 11.5, midnight + timedelta(day)) for day in range(days)]
        axes.set_xticks([x for x, _ in noons], [f"{day:%-d %b}" for _, day in noons])
        axes.tick_params(axis="x", length=0)

    return _svg(f"{label.__name__} by hour", 170, draw)


def _bars(
    axes: "Axes", values: Mapping[int, float], half: float, label: Callable[[float], str]
) -> None:
    """Bars around these places, in order, each `half` wide to either side."""
    from matplotlib.ticker import MaxNLocator

    edges: list[float] = []
    heights: list[float] = []
    for place, value in values.items():
        start, end = place - half, place + half
        if edges and edges[-1] < start:
            heights.append(0)  # the gap between bars, and days or hours without a ride
        if not edges or edges[-1] < start:
            edges.append(start)
        edges.append(end)
        heights.append(value)
    # An area's outline keeps peaks visible that are thinner than a pixel.
    axes.stairs(heights, edges, fill=True, color=ACCENT, linewidth=0 if half < 0.5 else 0.5)
    axes.set_ylim(0, max(heights) * 1.05)
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: label(value))
    axes.grid(axis="y")


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


def drift(name: str, moments: Sequence[datetime], drifts: Sequence[Decimal | None]) -> Markup:
    """A dot on the line for each run in which the total was right, a red stem where it was wrong.

    The runs are spaced evenly, whatever the time between them. None: not compared in that run.
    """
    compared = [(run, float(metres)) for run, metres in enumerate(drifts) if metres is not None]
    right = [run for run, metres in compared if not metres]
    wrong = [(run, metres) for run, metres in compared if metres]
    runs, heights = [run for run, _ in wrong], [height(metres) for _, metres in wrong]
    low, high, last = min([0, *heights]), max([0, *heights]), len(drifts) - 1

    def draw(axes: "Axes") -> None:
        size = 5 if len(drifts) <= 2 * FEWEST else 2.5
        axes.axhline(0, color=RULE, linewidth=1)
        axes.plot(right, [0] * len(right), "o", color=ACCENT, markersize=size)
        axes.vlines(runs, 0, heights, color=WRONG, linewidth=1.5)
        axes.plot(runs, heights, "D", color=WRONG, markersize=size)
        # Label zero and the largest drift on either side, unless the labels would overlap.
        span = (high - low) or 1
        metres_at = dict(zip(heights, (metres for _, metres in wrong), strict=True))
        ticks = [0, *(at for at in (low, high) if abs(at) > span * 0.4)]
        axes.set_yticks(ticks, [length(metres_at.get(at, 0)) for at in ticks])
        axes.set_ylim(low - span / 4, high + span / 4)
        axes.set_xlim(min(0, last - FEWEST + 1) - 0.6, last + 0.6)
        ends = [0, last] if last >= FEWEST / 2 else [last]
        one_day = moments[0].date() == moments[last].date()
        shape = "%H:%M" if one_day else "%-d %b %Y"
        axes.set_xticks(ends, [f"{moments[run]:{shape}}" for run in ends])
        axes.tick_params(axis="x", length=0)
        axes.spines["bottom"].set_visible(False)
        axes.get_xticklabels()[0].set_horizontalalignment("left")
        axes.get_xticklabels()[-1].set_horizontalalignment("right")

    return _svg(f"drift of {name}", 96, draw)


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


def _svg(name: str, units_high: int, draw: "Callable[[Axes], None]") -> Markup:
    """Draw, and return an element for a page that consists of shapes and text alone."""
    import matplotlib as mpl  # takes half a second, which a run without a page is spared
    from matplotlib.figure import Figure

    # The same chart gets the same ids each time, and no other chart of the page gets them.
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH / 72, units_high / 72))  # an SVG has 72 units to the inch
        figure.patch.set_visible(False)
        axes = figure.add_axes((LEFT, 26 / units_high, RIGHT - LEFT, 1 - 36 / units_high))
        axes.patch.set_visible(False)
        draw(axes)
        file = StringIO()
        figure.savefig(file, format="svg", metadata=dict.fromkeys(METADATA))
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r'<style.*?</style>| id="[^"]*_\d+"|font-family: [^;]*; ', "", svg, flags=re.S)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    return Markup(svg)  # noqa: S704  # contains only numbers and dates
