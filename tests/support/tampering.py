"""Tampers with recordings, for the judge to notice."""

from collections.abc import Callable
from decimal import Decimal

from msgspec.structs import replace

from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.pgoutput import Change
from lab.chaos.trace.recording import Commit, Life, Step


def plus(much: str) -> Callable[[str], str]:
    return lambda value: str(Decimal(value) + Decimal(much))


def judged(steps: list[Step]) -> Verdict:
    return judge(lambda: iter(steps))


def commits(steps: list[Step]) -> list[Life | Commit]:
    return [step for step in steps if isinstance(step, Life | Commit)]


def changed(
    steps: list[Step], at: int, table: str, **columns: Callable[[str], str] | str
) -> list[Step]:
    """The steps, with other values in one commit's change of a table."""
    step = commits(steps)[at]
    assert isinstance(step, Commit)

    def other(change: Change) -> Change:
        if change.table != table:
            return change
        new = {
            name: value if isinstance(value, str) else value(str(change.row[name]))
            for name, value in columns.items()
        }
        return replace(change, row=change.row | new)

    told = replace(step, changes=[other(change) for change in step.changes])
    return [told if known is step else known for known in steps]


def which(steps: list[Step], table: str, what: str = "U") -> list[int]:
    """The positions of the commits that change a table."""
    return [
        at
        for at, step in enumerate(commits(steps))
        if isinstance(step, Commit)
        and any(change.table == table and change.what == what for change in step.changes)
    ]


def refused_at(verdict: Verdict, at: int) -> bool:
    return bool(verdict.refused) and verdict.steps == at + 1


def again(steps: list[Step], at: int) -> list[Step]:
    """The steps, with one commit repeated right after itself."""
    step = commits(steps)[at]
    told = [[known, known] if known is step else [known] for known in steps]
    return [known for both in told for known in both]


def last(steps: list[Step], table: str, **columns: str) -> int:
    """The position of the last commit that gives a row of a table these values."""
    return [
        at
        for at, step in enumerate(commits(steps))
        if isinstance(step, Commit)
        and any(
            change.table == table and columns.items() <= change.row.items()
            for change in step.changes
        )
    ][-1]
