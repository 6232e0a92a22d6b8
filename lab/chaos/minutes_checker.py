"""Checks the rollup: each minute is recomputed here, from the rides themselves, in decimals."""

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, localcontext

from lab.chaos.evidence import Evidence
from rocket_rides.distance import EXACT

Findings = Iterator[str]
NOTHING = (0, Decimal("0.000"), 0)


def every_minute_is_exact(evidence: Evidence) -> Findings:
    if evidence.rollup is None:
        return
    truth = true_minutes(evidence)
    for minute in sorted(truth.keys() | evidence.rollup.minutes.keys()):
        rides, distance, last = truth.get(minute, NOTHING)
        row = evidence.rollup.minutes.get(minute)
        if row is None:
            yield f"the minute {minute:%H:%M} is missing; it has {rides} rides, of {distance} m"
            continue
        if (row.rides, row.distance) != (rides, distance):
            is_, was = f"{row.rides} rides of {row.distance} m", f"{rides} rides of {distance} m"
            yield f"the minute {minute:%H:%M} says {is_}, not {was}"
        if row.upto < last:
            yield f"the minute {minute:%H:%M} is labelled {row.upto}, but has ride {last}"


def the_rollup_is_complete(evidence: Evidence) -> Findings:
    rollup, last = evidence.rollup, max(evidence.final.rides, default=0)
    if rollup is None:
        return
    if rollup.complete_to != last:
        yield f"the rollup is complete to ride {rollup.complete_to}, not {last}"
    for minute, row in sorted(rollup.minutes.items()):
        if row.upto > evidence.final.last_sent:
            yield f"the minute {minute:%H:%M} is labelled {row.upto}, which was never sent"
    if rollup.dirty:
        yield f"{rollup.dirty} minutes are left dirty"
    yield from rollup.set_aside


def true_minutes(evidence: Evidence) -> dict[datetime, tuple[int, Decimal, int]]:
    """Rides, metres and last ride of each minute, in UTC."""
    minutes: dict[datetime, tuple[int, Decimal, int]] = {}
    with localcontext(EXACT):
        for ride, distance in sorted(evidence.final.rides.items()):
            taken = evidence.final.times[ride].astimezone(UTC)
            minute = taken.replace(second=0, microsecond=0)
            rides, so_far, _ = minutes.get(minute, NOTHING)
            minutes[minute] = rides + 1, so_far + distance, ride
    return minutes


CLAIMS = (every_minute_is_exact, the_rollup_is_complete)
