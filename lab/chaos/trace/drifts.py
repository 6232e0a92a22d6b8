"""What the nemesis makes wrong for the nightly job to find: it says so in the same commit."""

from collections.abc import Mapping

from lab.chaos.drifts import MINUTE, OUTCOME, TOTAL
from lab.chaos.trace.pgoutput import Change, Row
from lab.chaos.trace.replica import Replica, millimetres
from lab.chaos.trace.rows import minute, number, text
from lab.chaos.trace.specified import require


def makes_wrong(replica: Replica, did: Mapping[str, list[Change]]) -> None:
    """One drift, and nothing else. Raises NotAllowed."""
    [drift] = did["drifts"]
    kind, victim = text(drift.row, "kind"), text(drift.row, "victim")
    [[change]] = [changes for table, changes in did.items() if table != "drifts" and changes]
    if kind == TOTAL:
        require(change.row["name"] == victim, "a drift names its victim")
        was = replica.totals[victim]
        wrong = was.but(distance=millimetres(change.row["total_distance"]))
        require(wrong.distance == was.distance + 1, "a drift is of a millimetre")
        replica.totals[victim] = wrong
        replica.drifts[victim] = 1
    elif kind == OUTCOME:
        require(change.what == "D", "a drift deletes an outcome")
        require(change.row["ride_id"] == victim, "a drift names its victim")
        del replica.outcomes[number(change.row, "ride_id")]
    else:
        require(kind == MINUTE and change.table == "ride_minutes", "a drift is of a known kind")


def wrong_totals(rows: Mapping[str, list[Row]]) -> dict[str, int]:
    """Millimetres by consumer, at the beginning of a life: until it is reset."""
    resets = {row["name"]: row["resets_applied"] for row in rows["checkpoints"]}
    return {victim: 1 for mark, victim in made(rows, TOTAL) if resets.get(victim) == mark}


def wrong_minutes(rows: Mapping[str, list[Row]]) -> list[Row]:
    """The rows that still have the figures which the nemesis has given them."""
    marks = {(minute(victim.replace("T", " ")), mark) for mark, victim in made(rows, MINUTE)}
    return [
        row
        for row in rows["ride_minutes"]
        if (minute(row["minute"]), f"{row['rides']}/{row['distance']}/{row['upto']}") in marks
    ]


def lost_outcomes(rows: Mapping[str, list[Row]]) -> set[int]:
    return {int(victim) for _, victim in made(rows, OUTCOME)}


def made(rows: Mapping[str, list[Row]], kind: str) -> list[tuple[str, str]]:
    """The mark and the victim of each drift of this kind that the database knows of."""
    return [
        (text(row, "mark"), text(row, "victim")) for row in rows["drifts"] if row["kind"] == kind
    ]
