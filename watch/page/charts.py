"""The page's charts. Each says in words what it shows: its latest, least and most."""

from collections.abc import Callable, Sequence
from datetime import UTC, timedelta

from rocket_rides.charts import RIGHT, Chart, Frame, nice
from rocket_rides.words import number
from watch.facts import Hour
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


def day(hours: Sequence[Hour]) -> Chart:
    """A bar for each of the last 24 hours, in UTC; the newest is not over yet."""
    if not hours:
        return Chart(FRAME.picture(FRAME.axis(_whole(1))), "no rides yet")
    newest = max(hour.begins for hour in hours)
    rides = {hour.begins: hour.rides for hour in hours}
    begins = [newest - timedelta(hours=ago) for ago in range(23, -1, -1)]
    heights = [rides.get(hour, 0) for hour in begins]
    top = nice(max(heights))
    slot = 1 / len(begins)
    marks = []
    for place, height in enumerate(heights):
        if height:
            x, y = FRAME.x((place + 0.14) * slot), FRAME.y(height / top)
            width = (RIGHT - FRAME.left) * slot * 0.72
            kind = "bar so-far" if place == len(heights) - 1 else "bar"
            marks.append(
                f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}"'
                f' height="{FRAME.bottom - y:.1f}" rx="1.5"/>'
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
    return Chart(FRAME.picture(FRAME.axis(_whole(top)), marks, FRAME.ticks(ticks)), said)


def _whole(value: float | None) -> str:
    if value is None or value < 1000:
        return number(None if value is None else round(value))
    return f"{value / 1000:g}k" if value < 1e6 else f"{value / 1e6:g}M"


def _at(x: float, y: float) -> str:
    return f"{x:.1f} {y:.1f}"


def _line(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(_at(x, y) for x, y in points)
