"""Gaps: records that the log did not contain, and what healing them came to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Gap(NamedTuple):
    """Records with `after < id <= upto` that the log did not contain. All of them are settled."""

    after: int
    upto: int
    is_last: bool = True  # False if more of the gap follows this piece: see Handler.prepare


@dataclass(frozen=True)
class Healed:
    """A gap, or a piece of one: how many records of the reader's own types were in it."""

    gap: Gap
    records: int

    @property
    def what(self) -> str:
        """What else a person wants to know of it; nothing by default."""
        return ""


class HealedSum(NamedTuple):
    """What was healed, in sum: gaps that were closed, and the records in them."""

    gaps: int
    records: int

    @classmethod
    def of(cls, healed: Iterable[Healed]) -> "HealedSum":
        """A gap in pieces counts with its last one; the records of each piece count with it."""
        healed = list(healed)
        closed = sum(each.gap.is_last for each in healed)
        return cls(closed, sum(each.records for each in healed))
