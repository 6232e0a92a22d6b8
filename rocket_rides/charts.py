"""Small charts as inline SVG: geometry in attributes, colours from the page's style sheet.

The live page and the report draw with it. Floats are only for drawing: nothing is added up in them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup

WIDTH, RIGHT = 360, 356  # units; about as many pixels


class Chart(NamedTuple):
    """A picture, and its message in words."""

    svg: Markup
    words: str


class Frame(NamedTuple):
    """The place of the marks in a picture, in units. A part of it is a number from 0 to 1."""

    height: int = 132
    left: float = 1
    top: float = 20
    bottom: float = 106

    def x(self, part: float) -> float:
        return self.left + (RIGHT - self.left) * part

    def y(self, part: float) -> float:
        return self.bottom - (self.bottom - self.top) * min(part, 1)

    def axis(self, top: str) -> list[str]:
        """Lines at nothing, at half and at full height; the last is labelled `top`."""
        rules = [
            f'<path class="rule" d="M{self.left} {self.y(at):.1f}H{RIGHT}"/>' for at in (0.5, 1)
        ]
        base = f'<path class="base" d="M{self.left} {self.bottom}H{RIGHT}"/>'
        return [*rules, base, f'<text x="{self.left}" y="{self.top - 6}">{top}</text>']

    def ticks(self, ticks: Sequence[tuple[float, str]]) -> list[str]:
        """Texts below the marks, at these parts of the width."""
        told = []
        for part, text in ticks:
            kind = "first" if part == 0 else "last" if part == 1 else "mid"
            place = f'x="{self.x(part):.1f}" y="{self.height - 7}"'
            told.append(f'<text class="{kind}" {place}>{text}</text>')
        return told

    def picture(self, *parts: Iterable[str]) -> Markup:
        """The element for a page. The parts contain only numbers, dates and units."""
        begin = f'<svg viewBox="0 0 {WIDTH} {self.height}" aria-hidden="true" focusable="false">'
        inside = "".join("".join(part) for part in parts)
        return Markup(f"{begin}{inside}</svg>")  # noqa: S704
