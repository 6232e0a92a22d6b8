"""Hours and days, as sums of the rollup's minutes: what a client may ask for, and the answer."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, BigInteger, RowMapping, Select, cast, func, select, true
from werkzeug.exceptions import UnprocessableEntity

from api.tables import Moment, newest, ride_minutes, rollup_state, set_aside_minutes

LONGEST = timedelta(days=31)
MOST_NAMED = 1000


class Range(NamedTuple):
    """Whole periods, in UTC: those with `first <= period < until`."""

    first: datetime
    until: datetime


class Period(NamedTuple):
    """The length of time that a sum covers."""

    name: str
    length: timedelta

    def asked_for(self, start: datetime, end: datetime) -> Range:
        """Every period that the client's range, `start <= moment < end`, in UTC, touches.

        Raises UnprocessableEntity, with a message for the client.
        """
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

    def sums(self, asked: Range) -> Select[Any]:
        """The statement: one, so one snapshot.

        The sums are right for the rides up to the `complete_to` beside them. Without any ride there
        is still one row, without a period. Of the minutes that were set aside, it names those with
        the lowest rides, which hold `complete_to` back.
        """
        minute, rides, distance, _ = ride_minutes.c
        sums = (
            select(
                func.date_trunc(self.name, minute, "UTC").label("period"),
                cast(func.sum(rides), BigInteger).label("rides"),
                func.sum(distance).label("distance"),
            )
            .where(minute >= asked.first, minute < asked.until, rides > 0)
            .group_by("period")
            .subquery("sums")
        )
        aside = set_aside_minutes.c
        lowest = select(aside.minute).order_by(aside.lowest_ride_id, aside.minute).limit(MOST_NAMED)
        set_aside = func.array(lowest.scalar_subquery(), type_=ARRAY(Moment)).label("set_aside")
        state = newest(rollup_state)
        return (
            select(sums, state.c.complete_to, set_aside)
            .select_from(state.outerjoin(sums, true()))
            .order_by(sums.c.period)
        )

    def answer(self, rows: Sequence[RowMapping]) -> dict[str, Any]:
        """The rows of `sums`, for the client."""
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
