"""The page's chart, as inline SVG: geometry in attributes, colours from the page's style sheet.

It says in words what it shows: its latest, least and most. Floats are only for drawing: nothing is
added up in them.
"""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, log10
from typing import NamedTuple

from markupsafe import Markup

from watch.history import BUCKET, WINDOW, Point

HOLE = 3 * BUCKET  # seconds without a point that break a line
# The picture, and the place of the line in it, in units: about as many pixels.
WIDTH, HEIGHT = 360, 132
LEFT, RIGHT, TOP, BOTTOM = 1, 356, 20, 106
TICKS = ((0, "first", "15 min ago"), (1 / 3, "mid", "10"), (2 / 3, "mid", "5"), (1, "last", "now"))

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
    said = (
        f"latest {label(values[-1])}, least {label(min(values))}, most {label(max(values))}"
        if values
        else "nothing measured yet"
    )
    return Chart(_picture([*_axis(label(top)), *marks, *_ticks()]), said)


def nice(most: float) -> float:
    """The top of an axis: 1, 2 or 5 times a power of ten; the greatest value may be 0.1 % more."""
    if most <= 0:
        return 1.0
    power = 10.0 ** ceil(log10(most) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * 0.999)


def _x(part: float) -> float:
    return LEFT + (RIGHT - LEFT) * part


def _y(part: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * min(part, 1)


def _at(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(_at(x, y) for x, y in points)


def _axis(top: str) -> list[str]:
    """Lines at nothing, at half and at full height; the last is labelled `top`."""
    rules = [f'<path class="rule" d="M{LEFT} {_y(at):.1f}H{RIGHT}"/>' for at in (0.5, 1)]
    base = f'<path class="base" d="M{LEFT} {BOTTOM}H{RIGHT}"/>'
    return [*rules, base, f'<text x="{LEFT}" y="{TOP - 6}">{top}</text>']


def _ticks() -> list[str]:
    """Texts below the line."""
    y = HEIGHT - 7
    return [
        f'<text class="{kind}" x="{_x(at):.1f}" y="{y}">{text}</text>' for at, kind, text in TICKS
    ]


def _picture(marks: Iterable[str]) -> Markup:
    """The element for a page. The marks contain only numbers, units, and words of ours."""
    begin = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" focusable="false">'
    return Markup(f"{begin}{''.join(marks)}</svg>")  # noqa: S704
