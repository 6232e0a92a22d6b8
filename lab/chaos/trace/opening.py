"""The replica at the beginning of a life: its rows are as they are, and must be right."""

from lab.chaos.trace.derived import completes_minutes, completes_receipts, computes
from lab.chaos.trace.drifts import lost_outcomes, wrong_minutes, wrong_totals
from lab.chaos.trace.recording import Life
from lab.chaos.trace.replica import Replica
from lab.chaos.trace.rows import (
    healing_of,
    is_reopened,
    name_of,
    number,
    staged,
    taken,
    text,
    total_of,
)
from lab.chaos.trace.specified import require


def opened(life: Life) -> Replica:
    """The replica of a new life. Raises NotAllowed."""
    replica = Replica()
    rows = life.tables
    for row in rows["rides"]:
        replica.take(*taken(row))
    for row in rows["staged_log_records"]:
        replica.stage(staged(row))
    [state] = rows["streamer_state"]
    last_sent = number(state, "last_sent_id")
    sent = sorted(ride for ride in replica.rides if ride <= last_sent)
    replica.send(sent, last_sent)
    replica.first_sent = last_sent
    unsent = sorted({*replica.rides} - {*sent})
    require([ride.id for ride in replica.staged] == unsent, "a ride has its record until sent")
    replica.terms = tuple(sorted((number(row, "after"), name_of(row)) for row in rows["terms"]))
    totals = {row["name"]: row["total_distance"] for row in rows["consumer_states"]}
    replica.drifts = wrong_totals(rows)
    for row in rows["checkpoints"]:
        replica.checkpoints[text(row, "kind"), text(row, "name")] = text(row, "id")
        if row["kind"] == "total":
            total = total_of(row, totals[row["name"]])
            replica.totals[text(row, "name")] = total
            replica.healing[text(row, "name")] = healing_of(row)
            require(total.ride_id <= last_sent, "no checkpoint is past last_sent")
            exact = replica.total_upto(total.ride_id) + replica.drifts.get(text(row, "name"), 0)
            require(total.distance == exact, "a total is wrong")
        elif row["kind"] == "rollup":
            replica.rollup = number(row, "last_ride_id")
    wrong = wrong_minutes(rows)
    for row in rows["ride_minutes"]:
        computes(replica, row, is_wrong=row in wrong)
    for row in rows["rollup_state"]:
        completes_minutes(replica, number(row, "complete_to"))
        replica.generation = text(row, "generation")
    replica.resets = {number(row, "id"): text(row, "status") for row in rows["resets"]}
    replica.outcomes = {number(row, "ride_id"): row["outcome"] or "" for row in rows["receipts"]}
    require(replica.outcomes.keys() <= {*sent}, "a receipt of what was not sent")
    replica.reopened = {number(row, "ride_id") for row in rows["receipts"] if is_reopened(row)}
    [state] = rows["receipts_state"]
    replica.mends = number(state, "mends")
    completes_receipts(replica, number(state, "complete_to"), but_for=lost_outcomes(rows))
    return replica
