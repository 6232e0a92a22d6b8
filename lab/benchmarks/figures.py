"""Figures, their limits and goals, and the table of them in Markdown."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, NamedTuple, Self

COLUMNS = ("figure", "measured", "limit", "ratio", "goal")
HOLDS = {"<=": operator.le, ">=": operator.ge}
WORDS = {"<=": "at most", ">=": "at least"}
MET, MISSED = "met", "**missed**"


class Table(NamedTuple):
    """What is shown below the figures in a form of its own, and judged by nobody."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


class Goal(NamedTuple):
    subject: Literal["value", "ratio"]
    comparison: Literal["<=", ">="]
    bound: float

    def __str__(self) -> str:
        of = "ratio " if self.subject == "ratio" else ""
        return f"{of}{WORDS[self.comparison]} {number(self.bound)}"


@dataclass
class Figure:
    """The runs of one measurement, and of its limit, in turns."""

    name: str
    unit: str
    limit_name: str = ""
    goal: Goal | None = None
    runs: list[float] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def measure(
        self, rounds: int, run: Callable[[], float], limit: Callable[[], float] | None = None
    ) -> Self:
        """Each run is followed at once by one of its limit, so that a slow machine slows both."""
        for _ in range(rounds):
            self.runs.append(run())
            if limit:
                self.limits.append(limit())
        return self

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

    def cells(self) -> tuple[str, ...]:
        """The row of the table. It is judged unrounded."""
        measured = f"{number(self.value)} {self.unit}{spread(self.runs)}"
        limit = ratio = goal = ""
        if self.ratio is not None:
            limit = f"{self.limit_name}: {number(median(self.limits))}{spread(self.limits)}"
            ratio = number(self.ratio)
        if self.goal is not None:
            unit = f" {self.unit}" if self.goal.subject == "value" else ""
            goal = f"{self.goal}{unit}: {MET if self.met else MISSED}"
        return self.name, measured, limit, ratio, goal


def spread(runs: list[float]) -> str:
    return f" ({number(min(runs))} to {number(max(runs))})" if len(runs) > 1 else ""


def number(value: float) -> str:
    """Rounded, for a person: more digits would be noise."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
