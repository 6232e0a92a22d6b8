"""The rollup: every minute up to its `complete_to` is compared with the sum of its rides.

Spark adds up all rides of the days in question up to the frozen one, F. Then the rollup's rows are
read, in one snapshot with its `complete_to`, C. Let c be the lesser of F and C.

A minute is compared if the snapshot shows no ride of it above c, up to `last_sent`. The rollup
promises that a row with the label U is the sum of the minute's rides up to U; and that, if U is
below C, the minute has no ride past U, up to C. No label is above the snapshot's `last_sent`. So
the row of a compared minute must be the sum of its rides up to c, whatever U is, and that is what
Spark has: the rollup may go on meanwhile. Where a repair has set C back, the minutes that it
concerns have a ride above C. And a minute that is not compared has a ride above c, so its day is
one of those in question once C has passed that ride. Where others differ, it is looked at already,
as far as its own row goes: a ride that they lack may have been moved there. Not found is one that
was moved to a minute that the rollup has computed anew since.

Whatever differs is counted once more in Postgres, within the snapshot. Where the warehouse has
other rides of a minute, whoever is right of their block decides (`analytics.judgement`).

A minute that the rollup has set aside is known to be missing, and is not compared. Nor is one whose
time Python does not have.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime
from typing import NamedTuple

import psycopg

from analytics.freeze import ONE_SNAPSHOT
from analytics.minutes import END, FIRST, Minute, Minutes
from analytics.proofs import newest
from analytics.result import NOTHING, Mismatch, RollupVerdict, Tally, WrongMinute
from unified_log import terms
from unified_log.database import one_row

DAYS_AT_ONCE = 400  # half a million minutes

COMPLETE_TO = "SELECT coalesce(max(complete_to), 0) FROM rollup_state"
# Days with rides that no run has compared yet, or with wrong minutes: found by the last run, or not
# computed anew since. Here and below, only times between `minutes.FIRST` and `minutes.END`.
UNPROVED_DAYS = """
    SELECT DISTINCT (created_at AT TIME ZONE 'UTC')::date FROM rides
    WHERE id > %(after)s AND id <= %(upto)s
      AND created_at >= '0001-01-02' AND created_at < '9999-12-31'
    UNION
    SELECT (minute AT TIME ZONE 'UTC')::date FROM recomputations
    WHERE status <> 'done' OR reconciliation_id = (SELECT max(id) FROM reconciliations)
"""
OUTSIDE = """
    SELECT EXISTS (
        SELECT FROM rides WHERE id > %(after)s AND id <= %(upto)s
        AND (created_at < '0001-01-02' OR created_at >= '9999-12-31')
    )
"""
DAYS_ROLLED_UP = """
    SELECT DISTINCT (minute AT TIME ZONE 'UTC')::date FROM ride_minutes
    WHERE minute >= '0001-01-02' AND minute < '9999-12-31'
"""
KEPT = """
    SELECT minute, rides, distance FROM unnest(%s::date[]) AS asked (day) JOIN ride_minutes
    ON minute >= day::timestamp AT TIME ZONE 'UTC'
       AND minute < (day + 1)::timestamp AT TIME ZONE 'UTC'
"""
# Planned with its values, for one day, so that the planner sees which index finds fewer rides.
LATER = """
    SELECT DISTINCT date_trunc('minute', created_at, 'UTC') FROM rides
    WHERE created_at >= %(day)s::timestamp AT TIME ZONE 'UTC'
      AND created_at < (%(day)s + 1)::timestamp AT TIME ZONE 'UTC'
      AND id > %(upto)s AND id <= %(last_sent)s
"""
# Minutes that are not compared, each beside its rides as far as the rollup has it.
LATER_SUMS = """
    SELECT minute, kept.rides, kept.distance, count(rides.id) FILTER (WHERE counts),
        coalesce(sum(rides.distance) FILTER (WHERE counts), 0)
    FROM rides JOIN unnest(%(minutes)s::timestamptz[]) later (minute)
        ON minute = date_trunc('minute', created_at, 'UTC')
    LEFT JOIN ride_minutes kept USING (minute)
    CROSS JOIN LATERAL (SELECT rides.id <= greatest(kept.upto, %(upto)s) AS counts) far
    WHERE created_at >= %(first)s AND created_at < %(last)s::timestamptz + interval '1 minute'
      AND rides.id > 0
    GROUP BY minute, kept.rides, kept.distance ORDER BY minute
"""
SET_ASIDE = """
    SELECT count(*), array_agg(minute) FILTER (
        WHERE minute >= '0001-01-02' AND minute < '9999-12-31'
    )
    FROM set_aside_minutes
"""
RECOUNT = """
    SELECT date_trunc('minute', created_at, 'UTC'), count(*), sum(distance), min(id), max(id)
    FROM rides
    WHERE created_at >= %(day)s::timestamp AT TIME ZONE 'UTC'
      AND created_at < (%(day)s + 1)::timestamp AT TIME ZONE 'UTC' AND id > 0 AND id <= %(upto)s
    GROUP BY 1
"""


class Rows(NamedTuple):
    """What a snapshot shows of the rollup, for some days."""

    upto: int  # complete_to, or the frozen ride if that is lower
    kept: Mapping[datetime, Tally]
    set_aside: AbstractSet[datetime]
    later: AbstractSet[datetime]  # minutes with rides above `upto`


def complete_to(connection: psycopg.Connection) -> int:
    """How far every minute is right, as the rollup says; 0 before it has ever run."""
    return int(one_row(connection.execute(COMPLETE_TO))[0])


def proved_upto(connection: psycopg.Connection) -> int:
    """The ride up to which the newest run has proved the rollup; 0 if none has."""
    return int(newest(connection, "rollup").get("proved_upto", 0))


def unproved_days(connection: psycopg.Connection, after: int, upto: int) -> set[date]:
    """The days of rides with `after < id <= upto`, and of minutes that were found wrong."""
    days = connection.execute(UNPROVED_DAYS, {"after": after, "upto": upto})
    return {day for (day,) in days}


def has_rides_outside(connection: psycopg.Connection, upto: int) -> bool:
    """Whether there are rides that no run has proved yet, and in no minute that is compared."""
    unproved = {"after": proved_upto(connection), "upto": upto}
    return one_row(connection.execute(OUTSIDE, unproved)) == (True,)


def days_rolled_up(connection: psycopg.Connection) -> set[date]:
    """All days of which the rollup has minutes."""
    return {day for (day,) in connection.execute(DAYS_ROLLED_UP)}


def prove(
    connection: psycopg.Connection,
    minutes_of: Callable[[Sequence[date]], Minutes],
    days: Iterable[date],
    frozen: int,
    complete: int,
    doubted: AbstractSet[date] = frozenset(),
) -> tuple[RollupVerdict, list[Mismatch]]:
    """Compare the minutes of these days; also returns where the warehouse is wrong.

    `minutes_of` adds up the rides of days, up to the ride `frozen`. `complete` is the
    `complete_to` by which the days were chosen: all unproved rides up to there are in them. Of the
    days that are `doubted`, Postgres counts all minutes once more: the warehouse has other rides.
    """
    upto, compared, wrong = min(frozen, complete), 0, list[WrongMinute]()
    waiting = set[datetime]()
    mismatches: list[Mismatch] = []
    ordered = sorted(day for day in days if FIRST <= day < END)
    for start in range(0, len(ordered), DAYS_AT_ONCE):
        some = ordered[start : start + DAYS_AT_ONCE]
        exact = minutes_of(some)
        with connection.transaction():
            connection.execute(ONE_SNAPSHOT)
            rows = _read(connection, some, frozen)
            doubts = {day for day in some if day in doubted}
            recounted = _recount(connection, doubts, rows.upto)
            minutes = comparable({**exact, **recounted}, rows)
            differ = [
                minute
                for minute in minutes
                if differs(minute, exact, rows) or _day(minute) in doubts
            ]
            rest = {_day(minute) for minute in differ} - doubts
            recounted |= _recount(connection, rest, rows.upto)
        waiting |= rows.later - rows.set_aside
        upto, compared = min(upto, rows.upto), compared + len(minutes)
        of_rollup, of_warehouse = judge(differ, exact, recounted, rows)
        wrong += of_rollup
        mismatches += of_warehouse
    later = _later(connection, waiting, upto) if wrong else []
    [gaps, _] = one_row(connection.execute(SET_ASIDE))
    return RollupVerdict(upto, compared, wrong, gaps, later), mismatches


def comparable(exact: Minutes, rows: Rows) -> list[datetime]:
    """The minutes whose rides are all among those up to `rows.upto`, in order."""
    return sorted({*exact, *rows.kept} - rows.set_aside - rows.later)


def differs(minute: datetime, exact: Minutes, rows: Rows) -> bool:
    """Whether the rollup's row is not the exact sum. A minute without rides need not have a row."""
    return rows.kept.get(minute, NOTHING) != tally(exact, minute)


def judge(
    differ: Iterable[datetime], exact: Minutes, recounted: Minutes, rows: Rows
) -> tuple[list[WrongMinute], list[Mismatch]]:
    """The minutes in which the rollup has not what Postgres says, and those in which Spark has not.

    `recounted` is what Postgres has counted once more.
    """
    wrong, mismatches = list[WrongMinute](), list[Mismatch]()
    for minute in differ:
        truth = tally(recounted, minute)
        if differs(minute, recounted, rows):
            lowest = recounted[minute].first if minute in recounted else max(rows.upto, 1)
            wrong.append(WrongMinute(minute, rows.kept.get(minute), truth, lowest))
        if tally(exact, minute) != truth:
            mismatches.append(_mismatch(minute, exact, recounted))
    return wrong, mismatches


def tally(exact: Minutes, minute: datetime) -> Tally:
    return exact[minute].tally if minute in exact else NOTHING


def _read(connection: psycopg.Connection, days: list[date], frozen: int) -> Rows:
    """Read the rollup for these days, in the caller's snapshot."""
    upto = min(frozen, complete_to(connection))
    kept = {minute: Tally(*row) for minute, *row in connection.execute(KEPT, [days])}
    [_, aside] = one_row(connection.execute(SET_ASIDE))
    above = {"upto": upto, "last_sent": terms.last_sent(connection)}
    later: set[datetime] = set()
    for day in days:
        rides = connection.execute(LATER, {"day": day, **above}, prepare=False)
        later.update(minute for (minute,) in rides)
    return Rows(upto, kept, set(aside or ()), later)


def _later(
    connection: psycopg.Connection, minutes: Iterable[datetime], upto: int
) -> list[WrongMinute]:
    """Those minutes of LATER_SUMS that are not the sum of their rides."""
    if not (ordered := sorted(minutes)):
        return []
    asked = {"minutes": ordered, "upto": upto, "first": ordered[0], "last": ordered[-1]}
    found = list[WrongMinute]()
    for minute, rides, metres, *sums in connection.execute(LATER_SUMS, asked):
        kept = None if rides is None else Tally(rides, metres)
        if (kept or NOTHING) != (exact := Tally(*sums)):
            found.append(WrongMinute(minute, kept, exact, upto))
    return found


def _day(minute: datetime) -> date:
    return minute.astimezone(UTC).date()


def _recount(
    connection: psycopg.Connection, days: Iterable[date], upto: int
) -> dict[datetime, Minute]:
    """All minutes of these days, as Postgres counts them."""
    recounted: dict[datetime, Minute] = {}
    for day in sorted(days):
        for minute, *row in connection.execute(RECOUNT, {"day": day, "upto": upto}):
            recounted[minute] = Minute(*row)
    return recounted


def _mismatch(minute: datetime, exact: Minutes, recounted: Minutes) -> Mismatch:
    """The rides of a minute, on which the warehouse and Postgres disagree."""
    found = [minutes[minute] for minutes in (exact, recounted) if minute in minutes]
    ends = min(one.first for one in found) - 1, max(one.last for one in found)
    return Mismatch(*ends, tally(exact, minute), tally(recounted, minute), minute)
