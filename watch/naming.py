"""What a person calls a reader, a list of them that stays short, and what became of receipts."""

from collections.abc import Sequence

from rocket_rides.words import DEAD, DELIVERED, IN_FLIGHT, QUEUED, WAITING
from unified_log.words import number, printable
from watch.facts import MOST, Reader, Receipts

STREAMER, ROLLUP, RECEIPTS = "the streamer", "the rollup", "the receipts' group"
MOST_NAMED = 3  # of one sort; the others are only counted


def named(reader: Reader) -> str:
    """What a person calls it where its kind is clear: consumer0."""
    return ROLLUP if reader.kind == "rollup" else printable(reader.name)


def called(reader: Reader) -> str:
    """The same with its kind: the total consumer0."""
    if reader.kind == "rollup":
        return named(reader)
    return f"the {printable(reader.kind)} {named(reader)}"


def lacking(reader: Reader) -> str:
    """What it holds out: 3 held out, 1 dropped; empty where that is nothing."""
    told = ((reader.held_out, "held out"), (reader.dropped, "dropped"))
    return ", ".join(f"{number(records, MOST)} {what}" for records, what in told if records)


def listed(names: Sequence[str]) -> str:
    """The first few of them, and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {number(more)} more" if more > 0 else "")


def undecided(receipts: Receipts) -> str:
    """Those that are to come: 3 queued, 2 in flight; and those that wait, if there are any."""
    waiting = f", {number(receipts.waiting, MOST)} {WAITING}" if receipts.waiting else ""
    queued, in_flight = number(receipts.queued, MOST), number(receipts.in_flight, MOST)
    return f"{queued} {QUEUED}, {in_flight} {IN_FLIGHT}{waiting}"


def decided(receipts: Receipts) -> str:
    """The others: 521 delivered, 0 dead."""
    return f"{number(receipts.delivered)} {DELIVERED}, {number(receipts.dead, MOST)} {DEAD}"
