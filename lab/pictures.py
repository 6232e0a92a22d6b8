"""`python -m lab.pictures`: draws docs/pictures/*.svg from the *.toml beside them.

A picture is boxes, arrows and labels, each placed by hand, in pixels. A box's first line is its
heading. An arrow begins and ends at a point, `[x, y]`, or on a side of a box: in its middle, as in
"api left", or so far along it, as in "api left 0.8". It turns at most twice, or where `via` says.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rocket_rides.settings import PROJECT

FOLDER = PROJECT / "docs/pictures"
FILE = re.compile(r"\w+/[\w/]*(?:\.\w+)?")  # a file of the project, or a folder with its slash
LINE = 21  # pixels from one line of text to the next
RADIUS = 8  # pixels, of the turns of an arrow

# The live page's colours (watch/page/page.css): its accent is for Postgres, its amber for Redis.
STYLE = """
:root{--ink:#1b2226;--soft:#56606a;--edge:#8b949a;--arrow:#6b757c;--card:#fff;--pg:#d9efec;
--pg-edge:#0f6e66;--redis:#fbefd5;--redis-edge:#8a5800;--bad:#b3321a;--tint:#fdf0ec}
@media (prefers-color-scheme:dark){:root{--ink:#e8ebec;--soft:#a6b1b7;--edge:#6a777f;
--arrow:#8d9aa1;--card:#1d2327;--pg:#16302d;--pg-edge:#5fd0c0;--redis:#33280f;--redis-edge:#f0bd62;
--bad:#ff9c80;--tint:#331d17}}
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;
fill:var(--ink);text-anchor:middle}
text.head{font-weight:600;font-size:16px}text.file{fill:var(--soft);font-size:14px}
text.label{fill:var(--soft)}text.start{text-anchor:start}text.end{text-anchor:end}
rect{fill:var(--card);stroke:var(--edge)}.area{fill:none}.outside{fill:none;stroke-dasharray:5 4}
.postgres{fill:var(--pg);stroke:var(--pg-edge)}.redis{fill:var(--redis);stroke:var(--redis-edge)}
.area.postgres,.area.redis{fill:none}
.missing{fill:var(--tint);stroke:var(--bad);stroke-dasharray:5 4}
path{fill:none;stroke:var(--arrow);stroke-width:1.5}.dashed{stroke-dasharray:5 4}
marker path{fill:var(--arrow);stroke:none}"""
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" \
height="{height}" role="img" aria-labelledby="title description">
<title id="title">{title}</title>
<desc id="description">{description}</desc>
<style>{style}
</style>
<marker id="end" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" \
markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>"""


class Point(NamedTuple):
    """Where an arrow begins, turns or ends; `leaves` says which way a side of a box faces."""

    x: float
    y: float
    leaves: str = ""


class Box(NamedTuple):
    """A rounded rectangle with lines of text. An area has one, at its top left corner."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    lines: Sequence[str]
    name: str = ""

    def side(self, side: str, along: float) -> Point:
        if side in ("left", "right"):
            x = self.x + (self.width if side == "right" else 0)
            return Point(x, self.y + self.height * along, "sideways")
        y = self.y + (self.height if side == "bottom" else 0)
        return Point(self.x + self.width * along, y, "upright")


def text(x: float, y: float, line: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(line, quote=False)}</text>'


def draw_box(box: Box) -> Iterable[str]:
    yield (
        f'<rect class="{box.kind}" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}"'
        f' height="{box.height:g}" rx="{min(10, box.height / 3):g}"/>'
    )
    if "area" in box.kind:
        yield text(box.x + 12, box.y + 24, box.lines[0], "head start")
        return
    first = box.y + (box.height - LINE * len(box.lines)) / 2 + 16
    for number, line in enumerate(box.lines):
        kind = "head" if number == 0 else "file" if FILE.fullmatch(line) else "line"
        yield text(box.x + box.width / 2, first + LINE * number, line, kind)


def end(boxes: Mapping[str, Box], place: str | Sequence[float]) -> Point:
    """The end of an arrow, as it is written in the picture."""
    if not isinstance(place, str):
        return Point(place[0], place[1])
    name, side, along = (*place.split(), "0.5")[:3]
    return boxes[name].side(side, float(along))


def corners(start: Point, stop: Point) -> list[Point]:
    """Where an arrow turns that leaves its boxes at right angles."""
    if start.x == stop.x or start.y == stop.y:
        return []
    if start.leaves != stop.leaves:
        sideways = start.leaves == "sideways"
        return [Point(stop.x, start.y) if sideways else Point(start.x, stop.y)]
    x, y = (start.x + stop.x) / 2, (start.y + stop.y) / 2
    if start.leaves == "sideways":
        return [Point(x, start.y), Point(x, stop.y)]
    return [Point(start.x, y), Point(stop.x, y)]


def towards(place: Point, other: Point) -> str:
    """The point on the way from one point to another at which a turn begins, or ends."""
    x, y = other.x - place.x, other.y - place.y
    part = RADIUS / max(abs(x), abs(y), RADIUS)
    return f"{place.x + x * part:g} {place.y + y * part:g}"


def draw_arrow(boxes: Mapping[str, Box], arrow: Mapping[str, Any]) -> Iterable[str]:
    start, stop = end(boxes, arrow["from"]), end(boxes, arrow["to"])
    turns = [Point(*place) for place in arrow["via"]] if "via" in arrow else corners(start, stop)
    way = [start, *turns, stop]
    path = f"M{start.x:g} {start.y:g}"
    for before, turn, after in zip(way, way[1:], way[2:], strict=False):
        path += f"L{towards(turn, before)}Q{turn.x:g} {turn.y:g} {towards(turn, after)}"
    kind = arrow.get("kind", "")
    marker = "" if "line" in kind else ' marker-end="url(#end)"'
    yield f'<path class="{kind}"{marker} d="{path}L{stop.x:g} {stop.y:g}"/>'
    # Its label is above and below the longest stretch, or to the right of it.
    a, b = max(pairwise(way), key=lambda two: abs(two[0].x - two[1].x) + abs(two[0].y - two[1].y))
    x, y, lines = (a.x + b.x) / 2, (a.y + b.y) / 2, arrow.get("label", ())
    for number, line in enumerate(lines):
        if a.y == b.y:
            yield text(x, y - 7 + 27 * number, line, "label")
        else:
            yield text(x + 9, y + 5 + LINE * (number - (len(lines) - 1) / 2), line, "label start")


def draw(source: str) -> str:
    """The SVG of a picture."""
    picture = tomllib.loads(source)
    boxes = [Box(**box) for box in picture["box"]]
    named = {box.name: box for box in boxes}
    told = {key: escape(picture[key]) for key in ("title", "description")}
    drawn = [HEAD.format(width=picture["width"], height=picture["height"], style=STYLE, **told)]
    for arrow in picture.get("arrow", ()):  # first: a line passes under boxes
        drawn += draw_arrow(named, arrow)
    for box in boxes:
        drawn += draw_box(box)
    for label in picture.get("label", ()):
        drawn.append(text(label["x"], label["y"], label["text"], label.get("kind", "label")))
    return "\n".join([*drawn, "</svg>", ""])


def named_files(source: str) -> list[str]:
    """The files and folders of the project that a picture names."""
    boxes = tomllib.loads(source)["box"]
    return [line for box in boxes for line in box["lines"] if FILE.fullmatch(line)]


def pictures() -> list[Path]:
    """What the pictures are made from."""
    return sorted(FOLDER.glob("*.toml"))


def main() -> None:
    for path in pictures():
        path.with_suffix(".svg").write_text(draw(path.read_text()))


if __name__ == "__main__":
    main()
