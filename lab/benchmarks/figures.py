"""Figures, their limits and goals, and the table of them in Markdown."""

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal, NamedTuple

COLUMNS = ("figure", "measured", "limit measured beside it", "ratio", "goal")
HOLDS = {"<=": operator.le, ">=": operator.ge}
WORDS = {"<=": "at most", ">=": "at least"}


class Goal(NamedTuple):
    """The bound that the `value` or the `ratio` of a figure must keep."""

    subject: Literal["value", "ratio"]
    comparison: Literal["<=", ">="]
    bound: float

    def __str__(self) -> str:
        of = " of the limit" if self.subject == "ratio" else ""
        return f"{WORDS[self.comparison]} {number(self.bound)}{of}"


@dataclass
class Figure:
    """The runs of one measurement, and those of its limit, which alternated with them.

    A `headline` is also shown in README.md.
    """

    name: str
    unit: str
    limit_name: str = ""
    goal: Goal | None = None
    runs: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)
    headline: bool = False

    @property
    def value(self) -> float:
        return median(self.runs)

    @property
    def ratio(self) -> float | None:
        """The median over pairs of neighbouring runs, so that the machine's drift cancels out."""
        if not self.limits:
            return None
        return median(run / limit for run, limit in zip(self.runs, self.limits, strict=True))

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        subject = self.value if self.goal.subject == "value" else self.ratio
        return subject is not None and HOLDS[self.goal.comparison](subject, self.goal.bound)

    def as_json(self) -> dict[str, Any]:
        """What `from_json` makes the same figure of; its defaults are left out.

        Nothing is rounded: a figure from the record is judged as it was when it was new.
        """
        return {name: value for name, value in asdict(self).items() if value}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Figure":
        goal = Goal(*stored["goal"]) if "goal" in stored else None
        return cls(**stored | {"goal": goal})

    def cells(self) -> tuple[str, ...]:
        measured = f"{number(self.value)} {self.unit}{spread(self.runs)}"
        limit = ratio = goal = ""
        if self.ratio is not None:
            limit = f"{self.limit_name}: {number(median(self.limits))}{spread(self.limits)}"
            ratio = number(self.ratio)
        if self.goal is not None:
            goal = f"{self.goal}: {'met' if self.met else '**missed**'}"
        return self.name, measured, limit, ratio, goal


def table(figures: Iterable[Figure]) -> str:
    """The figures as a table. One that was compared with several limits is named once."""
    rows: list[tuple[str, ...]] = [COLUMNS, ("---",) * len(COLUMNS)]
    before: tuple[str, ...] = ()
    for cells in (figure.cells() for figure in figures):
        rows.append(cells if cells[:2] != before else ("", "", *cells[2:]))
        before = cells[:2]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def spread(runs: list[float]) -> str:
    """The lowest and highest of several runs."""
    return f" ({number(min(runs))} to {number(max(runs))})" if len(runs) > 1 else ""


def number(value: float) -> str:
    """Rounded, for a person: more digits would be noise."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
