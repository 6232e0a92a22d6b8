"""Small charts as inline SVG: geometry in attributes, colours from the page's style sheet.

Floats are only for drawing. Each chart says in words what it shows: its latest, least and most.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, timedelta
from math import ceil, log10
from typing import NamedTuple

from markupsafe import Markup

from watch.facts import Hour
from watch.history import BUCKET, WINDOW, Point
from watch.words import number

WIDTH, HEIGHT = 360, 132  # units; about as many pixels
LEFT, RIGHT, TOP, BOTTOM = 1, 356, 20, 106
HOLE = 3 * BUCKET  # seconds without a point that break a line

Label = Callable[[float | None], str]


class Chart(NamedTuple):
    """A picture, and its message in words."""

    svg: Markup
    words: str


def minutes(points: Sequence[Point], label: Label) -> Chart:
    """A line over the last fifteen minutes, from zero."""
    known = [(point.ago, point.value) for point in points if point.value is not None]
    values = [value for _, value in known]
    top = nice(max(values, default=0))
    lines: list[list[tuple[float, float]]] = []
    last = float("inf")
    for ago, value in known:
        if last - ago > HOLE:
            lines.append([])
        lines[-1].append((_x(1 - ago / WINDOW), _y(value / top)))
        last = ago
    marks = [
        f'<path class="area" d="M{_at(line[0][0], BOTTOM)}L{_line(line)}V{BOTTOM}Z"/>'
        f'<path class="line" d="M{_line(line)}"/>'
        for line in lines
    ]
    if known and known[-1][0] <= HOLE:
        x, y = lines[-1][-1]
        marks.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
    ticks = [(0.0, "15 min ago"), (1 / 3, "10"), (2 / 3, "5"), (1.0, "now")]
    said = (
        f"latest {label(values[-1])}, least {label(min(values))}, most {label(max(values))}"
        if values
        else "nothing measured yet"
    )
    return Chart(_svg(marks, top, ticks, label, said), said)


def day(hours: Sequence[Hour]) -> Chart:
    """A bar for each of the last 24 hours, in UTC; the newest is not over yet."""
    if not hours:
        return Chart(_svg([], 1, [], _whole, "no rides yet"), "no rides yet")
    newest = max(hour.begins for hour in hours)
    rides = {hour.begins: hour.rides for hour in hours}
    begins = [newest - timedelta(hours=ago) for ago in range(23, -1, -1)]
    heights = [rides.get(hour, 0) for hour in begins]
    top = nice(max(heights))
    slot = 1 / len(begins)
    marks = []
    for place, height in enumerate(heights):
        if height:
            x, y = _x((place + 0.14) * slot), _y(height / top)
            width = (RIGHT - LEFT) * slot * 0.72
            kind = "bar so-far" if place == len(heights) - 1 else "bar"
            marks.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
                f' height="{BOTTOM - y:.1f}" rx="1.5"/>'
            )
    ticks = [
        ((place + 0.5) * slot, f"{hour.astimezone(UTC):%H}")
        for place, hour in enumerate(begins)
        if hour.astimezone(UTC).hour % 4 == 0
    ]
    said = (
        f"this hour so far {number(heights[-1])}, least {number(min(heights))},"
        f" most {number(max(heights))}"
    )
    return Chart(_svg(marks, top, ticks, _whole, said), said)


def nice(most: float) -> float:
    """The top of an axis: 1, 2 or 5 times a power of ten, and at least the greatest value."""
    if most <= 0:
        return 1.0
    power = 10.0 ** ceil(log10(most) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * 0.999)


def _whole(value: float | None) -> str:
    if value is None or value < 1000:
        return number(None if value is None else round(value))
    return f"{value / 1000:g}k" if value < 1e6 else f"{value / 1e6:g}M"


def _x(part: float) -> float:
    return LEFT + (RIGHT - LEFT) * part


def _y(part: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(part, 1)


def _at(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(_at(x, y) for x, y in points)


def _svg(
    marks: Sequence[str], top: float, ticks: Sequence[tuple[float, str]], label: Label, said: str
) -> Markup:
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" focusable="false">']
    parts += (f'<path class="rule" d="M{LEFT} {_y(part):.1f}H{RIGHT}"/>' for part in (0.5, 1))
    parts.append(f'<path class="base" d="M{LEFT} {BOTTOM}H{RIGHT}"/>')
    parts.append(f'<text x="{LEFT}" y="{TOP - 6}">{label(top)}</text>')
    parts += marks
    for part, text in ticks:
        kind = "first" if part == 0 else "last" if part == 1 else "mid"
        parts.append(f'<text class="{kind}" x="{_x(part):.1f}" y="{HEIGHT - 7}">{text}</text>')
    parts.append("</svg>")
    return Markup("".join(parts))  # noqa: S704  # contains only numbers
