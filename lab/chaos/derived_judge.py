"""Judges what is derived from the rides: minutes, outcomes, and how far they are complete.

By the rides that were sent when the commit came. The Ick and the consumer group are not recorded.
"""

from collections import Counter
from collections.abc import Mapping

from lab.chaos.books import Books, millimetres
from lab.chaos.pgoutput import Change, Row
from lab.chaos.rows import is_reopened, minute, number, text
from lab.chaos.specified import require

Did = Mapping[str, list[Change]]  # what a commit did, by table


class DerivedJudge:
    """Of one life. Whatever is not allowed raises NotAllowed; `met` counts what is."""

    def __init__(self, books: Books, met: Counter[str]) -> None:
        self._books = books
        self.met = met

    def marks(self, row: Row, *, begins: bool) -> None:
        books, upto = self._books, number(row, "last_ride_id")
        if begins:
            require(upto == books.complete_to, "a generation begins at complete_to")
            self.met["begins a generation"] += 1
        else:
            require(books.rollup <= upto <= books.last_sent, "the marker goes on, up to last_sent")
            self.met["marks"] += upto > books.rollup
        books.rollup = upto

    def rolls_up(self, did: Did) -> None:
        books = self._books
        begins = any(c.row["generation"] != books.generation for c in did["rollup_state"])
        marked = [change.row for change in did["checkpoints"] if change.row["kind"] == "rollup"]
        require(marked or not begins, "a generation begins at its checkpoint")
        for row in marked:
            self.marks(row, begins=begins)
        for change in did["ride_minutes"]:
            self._computes(change)
        for change in did["rollup_state"]:
            upto = number(change.row, "complete_to")
            self.met["completes minutes"] += upto > books.complete_to
            completes_minutes(books, upto)
            books.generation = text(change.row, "generation")

    def _computes(self, change: Change) -> None:
        require(change.what != "D", "nobody deletes a minute")
        computes(self._books, change.row)
        self.met["computes a minute"] += 1

    def settles_receipts(self, did: Did) -> None:
        books = self._books
        for change in did["receipts"]:
            self._decides(change)
        for change in did["receipts_state"]:
            upto = number(change.row, "complete_to")
            self.met["completes receipts"] += upto > books.receipts_complete_to
            completes_receipts(books, upto)

    def _decides(self, change: Change) -> None:
        books, row = self._books, change.row
        ride = number(row, "ride_id")
        require(change.what != "D", "nobody deletes an outcome")
        require(ride in books.rides and ride <= books.last_sent, "a receipt of what was not sent")
        was, outcome = books.outcomes.get(ride), row["outcome"] or ""
        require((change.what == "I") == (was is None), "a ride has one receipt")
        require(was != "delivered", "what was delivered stays so")
        if was == "dead" == outcome:
            require(ride in books.reopened or is_reopened(row), "a ride has one outcome")
        elif outcome:
            self.met["delivers" if outcome == "delivered" else "gives up"] += 1
        else:
            require(not was, "an outcome stays")
        books.outcomes[ride] = outcome
        (books.reopened.add if is_reopened(row) else books.reopened.discard)(ride)


def computes(books: Books, row: Row) -> None:
    """A minute's row; raises NotAllowed unless it has the minute's rides up to its label."""
    name, label = minute(row["minute"]), number(row, "upto")
    rides = books.of_minute(name, label)
    distance = sum(books.rides[ride] for ride in rides)
    require(books.computed.get(name, 0) <= label <= books.last_sent, "its label is wrong")
    told = number(row, "rides"), millimetres(row["distance"])
    require(told == (len(rides), distance), f"minute {name} has {(len(rides), distance)}")
    books.computed[name] = label


def completes_minutes(books: Books, upto: int) -> None:
    """Raises NotAllowed unless each ride up to there is in its minute."""
    for ride in books.sent_between(books.complete_to, upto):
        label = books.computed.get(books.minutes[ride], 0)
        require(label >= ride, f"ride {ride} is not in its minute, which is called complete")
    require(books.complete_to <= upto, "complete_to only rises")
    require(upto <= max(books.rollup, books.complete_to), "complete_to is past the marker")
    books.complete_to = upto


def completes_receipts(books: Books, upto: int) -> None:
    """Raises NotAllowed unless each ride up to there has an outcome."""
    for ride in books.sent_between(books.receipts_complete_to, upto):
        require(books.outcomes.get(ride), f"ride {ride} has no outcome")
    require(books.receipts_complete_to <= upto <= books.last_sent, "complete_to is wrong")
    books.receipts_complete_to = upto
