"""Hours and days, as sums of the rollup's minutes: what a client may ask for, and the answer."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, LiteralString, NamedTuple

import msgspec
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import UnprocessableEntity

LONGEST = timedelta(days=31)

# One statement, so one snapshot: the sums are right for the rides up to the `complete_to` beside
# them. Without any ride there is still one row, without a period. Of the minutes that were set
# aside, it names those with the lowest rides, which hold `complete_to` back.
SUMS = """
    SELECT period, rides, distance, complete_to, set_aside
    FROM rollup_state CROSS JOIN (
        SELECT coalesce(array_agg(minute), '{}') AS set_aside FROM (
            SELECT minute FROM set_aside_minutes ORDER BY lowest_ride_id, minute LIMIT 1000
        ) lowest
    ) named LEFT JOIN (
        SELECT date_trunc(%(period)s, minute, 'UTC') AS period,
               sum(rides)::bigint AS rides, sum(distance) AS distance
        FROM ride_minutes WHERE minute >= %(first)s AND minute < %(until)s AND rides > 0 GROUP BY 1
    ) sums ON true
    ORDER BY period
"""


class Range(NamedTuple):
    """Whole periods, in UTC: those with `first <= period < until`."""

    first: datetime
    until: datetime


class Period(NamedTuple):
    """The length of time that a sum covers."""

    name: LiteralString
    length: timedelta

    def asked_for(self, parameters: MultiDict[str, str]) -> Range:
        """Every period that the client's range, `from <= moment < to`, touches.

        Raises UnprocessableEntity, with a message for the client.
        """
        start, end = (_moment(parameters, name) for name in ("from", "to"))
        if end <= start:
            raise UnprocessableEntity("from must be before to")
        if end - start > LONGEST:
            raise UnprocessableEntity(f"from and to may be at most {LONGEST.days} days apart")
        try:
            until = self._start(end - timedelta.resolution) + self.length
        except OverflowError:  # the last period that a datetime can hold
            until = datetime.max.replace(tzinfo=UTC)
        return Range(self._start(start), until)

    def _start(self, moment: datetime) -> datetime:
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + (moment - midnight) // self.length * self.length

    def answer(self, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The result of SUMS, for the client."""
        return {
            f"{self.name}s": [
                {self.name: row["period"], "rides": row["rides"], "distance": row["distance"]}
                for row in rows
                if row["rides"]
            ],
            "complete_to": rows[0]["complete_to"] if rows else 0,
            "set_aside": rows[0]["set_aside"] if rows else [],
        }


HOUR = Period("hour", timedelta(hours=1))
DAY = Period("day", timedelta(days=1))


def moment_of(text: str) -> datetime:
    """An RFC 3339 time, in UTC, rounded to the microsecond. Raises ValueError."""
    try:
        moment: datetime = msgspec.convert(text, Annotated[datetime, msgspec.Meta(tz=True)])
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("before the year 1, or after the year 9999") from None


def _moment(parameters: MultiDict[str, str], name: str) -> datetime:
    given = parameters.getlist(name)
    if not given:
        raise UnprocessableEntity(f"{name} is missing")
    if len(given) > 1:
        raise UnprocessableEntity(f"{name} is given more than once")
    try:
        return moment_of(given[0])
    except ValueError:
        hint = " (in a URL, + is written %2B)" if " " in given[0] else ""
        raise UnprocessableEntity(
            f"{name} must be a time as in RFC 3339, such as 2026-03-28T20:00:00Z{hint}"
        ) from None
