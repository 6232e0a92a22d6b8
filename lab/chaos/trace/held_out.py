"""Judges which rides totals hold out: one at a time, as the checkpoint passes it, until it counts.

A row of `held_out_records` and what makes up for it are one commit. Raises NotAllowed otherwise.
"""

from dataclasses import dataclass, field

from lab.chaos.drifts import TOTAL
from lab.chaos.trace.pgoutput import Did, Row
from lab.chaos.trace.replica import Replica, millimetres, number, text
from lab.chaos.trace.specified import Entry, Ride, Total, require


@dataclass
class Held:
    new: set[int] = field(default_factory=set)  # rides, by a commit
    gone: set[int] = field(default_factory=set)


def note(replica: Replica, did: Did) -> dict[str, Held]:
    """Note what totals hold out after a commit; returns what is new, by total."""
    held: dict[str, Held] = {}
    for change in did["held_out_records"]:
        if change.row["kind"] == TOTAL and change.what in "ID":
            of = held.setdefault(text(change.row, "name"), Held())
            (of.new if change.what == "I" else of.gone).add(number(change.row, "position"))
    for name, of in held.items():
        holds = replica.held.setdefault(name, set())
        require(of.new.isdisjoint(holds) and of.gone <= holds, "a ride is held out once")
        holds |= of.new
        holds -= of.gone
    return held


def passes(held: Held, was: Total | None, then: Total, *, is_reset: bool) -> bool:
    """Judge what is held out where a checkpoint moves; returns whether it is a ride more."""
    require(is_reset or not held.gone, "what was held out counts by a retry, or by a reset")
    require(len(held.new) <= 1, "a ride is held out alone")
    after = was.ride_id if was else 0
    require(all(after < ride <= then.ride_id for ride in held.new), "the checkpoint passes it")
    return bool(held.new)


def retries(replica: Replica, name: str, counted: Row, held: Held) -> None:
    """Judge a total that changes while its checkpoint stays: a ride counts that was held out."""
    require(len(held.gone) == 1 and not held.new, "a total moves with its checkpoint")
    was = replica.totals[name]
    then = was.but(distance=millimetres(counted["total_distance"]))
    replica.require_sum(name, then, "a retry counts its ride, once")
    replica.require_count(name, then, counted)
    replica.totals[name] = then


def without(entry: Entry, held: set[int]) -> Entry:
    """An entry as it is to a total that holds these out: such a ride has no distance."""
    ride = entry.ride
    return entry.but(ride=Ride(ride.id, 0)) if ride.id in held else entry
