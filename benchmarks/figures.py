"""Figures, their limits, and the table of both."""

import operator
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any, Literal, NamedTuple

COLUMNS = ("Figure", "Unit", "Measured", "Limit beside it", "Limit", "Ratio", "Goal", "Met")
HOLDS = {"<=": operator.le, ">=": operator.ge}


class Goal(NamedTuple):
    """The bound that the `value` or the `ratio` of a figure must keep."""

    subject: Literal["value", "ratio"]
    comparison: Literal["<=", ">="]
    bound: float

    def __str__(self) -> str:
        of = "ratio " if self.subject == "ratio" else ""
        return f"{of}{self.comparison} {number(self.bound)}"


@dataclass
class Figure:
    """The runs of one measurement, and those of its limit, which alternated with them."""

    name: str
    unit: str
    limit_name: str = ""
    goal: Goal | None = None
    runs: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

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
        goal = str(self.goal) if self.goal else None
        return asdict(self) | {
            "goal": goal,
            "median": self.value,
            "ratio": self.ratio,
            "met": self.met,
        }

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else number(self.ratio)
        met = {None: "", True: "yes", False: "**no**"}[self.met]
        goal = str(self.goal or "")
        limit = spread(self.limits)
        return self.name, self.unit, spread(self.runs), self.limit_name, limit, ratio, goal, met


def table(figures: Iterable[Figure]) -> str:
    """The figures as a Markdown table."""
    rows = [COLUMNS, tuple("---" for _ in COLUMNS), *(figure.cells() for figure in figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def spread(runs: list[float]) -> str:
    """Median, lowest and highest of several runs."""
    if not runs:
        return ""
    if len(runs) == 1:
        return number(runs[0])
    return f"{number(median(runs))} ({number(min(runs))} to {number(max(runs))})"


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
