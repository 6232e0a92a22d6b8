"""What a person calls a reader, and a list of them that stays short."""

from collections.abc import Sequence

from rocket_rides.words import number, printable
from watch.facts import Reader

STREAMER, ROLLUP, RECEIPTS = "the streamer", "the rollup", "the receipts' group"
MOST_NAMED = 3  # of one sort; the others are only counted


def named(reader: Reader) -> str:
    """What a person calls it, where it is clear of what kind it is: consumer0."""
    return ROLLUP if reader.kind == "rollup" else printable(reader.name)


def called(reader: Reader) -> str:
    """The same with its kind: the total consumer0."""
    if reader.kind == "rollup":
        return named(reader)
    return f"the {printable(reader.kind)} {named(reader)}"


def listed(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {number(more)} more" if more > 0 else "")
