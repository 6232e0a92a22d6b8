"""The page's chart. It says in words what it shows: its latest, least and most."""

from collections.abc import Callable, Sequence
from math import ceil, log10

from rocket_rides.charts import Chart, Frame
from watch.history import BUCKET, WINDOW, Point

FRAME = Frame()
HOLE = 3 * BUCKET  # seconds without a point that break a line

Label = Callable[[float | None], str]


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
        lines[-1].append((FRAME.x(1 - ago / WINDOW), FRAME.y(value / top)))
        last = ago
    marks = [
        f'<path class="area" d="M{_at(line[0][0], FRAME.bottom)}L{_line(line)}V{FRAME.bottom}Z"/>'
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
    return Chart(FRAME.picture(FRAME.axis(label(top)), marks, FRAME.ticks(ticks)), said)


def nice(most: float) -> float:
    """The top of an axis: 1, 2 or 5 times a power of ten, and at least the greatest value."""
    if most <= 0:
        return 1.0
    power = 10.0 ** ceil(log10(most) - 1)
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * 0.999)


def _at(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(_at(x, y) for x, y in points)
