"""Judges what is derived from the rides: minutes, outcomes, and how far they are complete.

By the rides that were sent when the commit came. The Ick and the consumer group are not recorded.
"""

from collections import Counter
from collections.abc import Container, Mapping

from lab.chaos.trace.pgoutput import Change, Row
from lab.chaos.trace.replica import Replica, millimetres
from lab.chaos.trace.rows import is_reopened, minute, number, text
from lab.chaos.trace.specified import require

Did = Mapping[str, list[Change]]  # what a commit did, by table


class DerivedJudge:
    """Of one life. Whatever is not allowed raises NotAllowed; `met` counts what is."""

    def __init__(self, replica: Replica, met: Counter[str]) -> None:
        self._replica = replica
        self.met = met

    def marks(self, row: Row, *, begins: bool) -> None:
        replica, upto = self._replica, number(row, "last_ride_id")
        if begins:
            require(upto == replica.complete_to, "a generation begins at complete_to")
            self.met["begins a generation"] += 1
        else:
            goes_on = replica.rollup <= upto <= replica.last_sent
            require(goes_on, "the marker goes on, up to last_sent")
            self.met["marks"] += upto > replica.rollup
        replica.rollup = upto

    def rolls_up(self, did: Did) -> None:
        replica = self._replica
        begins = any(c.row["generation"] != replica.generation for c in did["rollup_state"])
        marked = [change.row for change in did["checkpoints"] if change.row["kind"] == "rollup"]
        require(marked or not begins, "a generation begins at its checkpoint")
        for row in marked:
            self.marks(row, begins=begins)
        for change in did["ride_minutes"]:
            self._computes(change)
        for change in did["rollup_state"]:
            upto = number(change.row, "complete_to")
            self.met["completes minutes"] += upto > replica.complete_to
            completes_minutes(replica, upto)
            replica.generation = text(change.row, "generation")

    def _computes(self, change: Change) -> None:
        require(change.what != "D", "nobody deletes a minute")
        computes(self._replica, change.row)
        self.met["computes a minute"] += 1

    def settles_receipts(self, did: Did) -> None:
        replica = self._replica
        for change in did["receipts"]:
            self._decides(change)
        for change in did["receipts_state"]:
            upto, mends = number(change.row, "complete_to"), number(change.row, "mends")
            if mends > replica.mends:
                require(upto <= replica.receipts_complete_to, "a mend looks at receipts again")
                replica.mends, replica.receipts_complete_to = mends, upto
            self.met["completes receipts"] += upto > replica.receipts_complete_to
            completes_receipts(replica, upto)

    def _decides(self, change: Change) -> None:
        replica, row = self._replica, change.row
        ride = number(row, "ride_id")
        require(change.what != "D", "nobody deletes an outcome")
        require(
            ride in replica.rides and ride <= replica.last_sent, "a receipt of what was not sent"
        )
        was, outcome = replica.outcomes.get(ride), row["outcome"] or ""
        require((change.what == "I") == (was is None), "a ride has one receipt")
        require(was != "delivered", "what was delivered stays so")
        if was == "dead" == outcome:
            require(ride in replica.reopened or is_reopened(row), "a ride has one outcome")
        elif outcome:
            self.met["delivers" if outcome == "delivered" else "gives up"] += 1
        else:
            require(not was, "an outcome stays")
        replica.outcomes[ride] = outcome
        (replica.reopened.add if is_reopened(row) else replica.reopened.discard)(ride)


def computes(replica: Replica, row: Row, *, is_wrong: bool = False) -> None:
    """A minute's row; raises NotAllowed unless it has the minute's rides up to its label.

    But one that the nemesis has made wrong has its label alone.
    """
    name, label = minute(row["minute"]), number(row, "upto")
    rides = replica.of_minute(name, label)
    distance = sum(replica.rides[ride] for ride in rides)
    require(replica.computed.get(name, 0) <= label <= replica.last_sent, "its label is wrong")
    told = number(row, "rides"), millimetres(row["distance"])
    exact = len(rides), distance
    require(is_wrong or told == exact, f"minute {name} has {exact}")
    replica.computed[name] = label


def completes_minutes(replica: Replica, upto: int) -> None:
    """Raises NotAllowed unless each ride up to there is in its minute."""
    for ride in replica.sent_between(replica.complete_to, upto):
        label = replica.computed.get(replica.minutes[ride], 0)
        require(label >= ride, f"ride {ride} is not in its minute, which is called complete")
    require(replica.complete_to <= upto, "complete_to only rises")
    require(upto <= max(replica.rollup, replica.complete_to), "complete_to is past the marker")
    replica.complete_to = upto


def completes_receipts(replica: Replica, upto: int, but_for: Container[int] = ()) -> None:
    """Raises NotAllowed unless each ride up to there has an outcome."""
    for ride in replica.sent_between(replica.receipts_complete_to, upto):
        require(replica.outcomes.get(ride) or ride in but_for, f"ride {ride} has no outcome")
    require(replica.receipts_complete_to <= upto <= replica.last_sent, "complete_to is wrong")
    replica.receipts_complete_to = upto
