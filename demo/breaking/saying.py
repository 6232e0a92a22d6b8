"""What whoever breaks the fleet is told, line by line."""

from enum import Enum, auto
from typing import Protocol


class Kind(Enum):
    """What a line is: only the live page makes a difference."""

    NEWS = auto()
    CLAIM = auto()  # something is well; who has not looked since can't see it yet
    PRINTED = auto()  # by another program: one of many lines, such as a table's


class Say(Protocol):
    """Is given each line."""

    def __call__(self, line: str, kind: Kind = Kind.NEWS, /) -> None: ...


def count(number: int, one: str, many: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {one if number == 1 else many}"
