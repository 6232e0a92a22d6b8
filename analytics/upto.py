"""Up to where a period is closed: a day, a ride or a moment, as a position of the log.

Rides are not numbered in the order of their times: one whose transaction began on a day may be
numbered after the first one of the next day. So a period ends before the first ride that was taken
after the day, or at the moment or later. All rides up to there are of that day or of earlier ones;
a ride of the day that is numbered later belongs to the next period.
"""

import argparse
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from unified_log.database import one_row
from unified_log.errors import Unavailable

if TYPE_CHECKING:
    from analytics.parquet import File

UP_TO_RIDE = "SELECT max(id) FROM rides WHERE id <= %s"
# The sum keeps Postgres from reading all rides, from the first on, until one is of that day.
FIRST_OF_DAY = """
    SELECT min(id + 0) FROM rides WHERE created_at >= %s AND created_at < %s AND id <= %s
"""
# They were taken before, and no run has read them.
UNREAD = "SELECT min(id) FROM rides WHERE id > %s AND created_at < %s"


class Upto(NamedTuple):
    """As a person says it: a ride, or a moment before which the rides were taken."""

    said: str
    ride: int = 0
    before: datetime | None = None

    def position(self, connection: psycopg.Connection, files: "Sequence[File]", extent: int) -> int:
        """The position. The warehouse's `files` have all rides up to `extent`.

        Raises Unavailable if there is no such ride, or if not all of them are in the files.
        """
        if self.before is None:
            [last] = one_row(connection.execute(UP_TO_RIDE, [self.ride]))
            if last != self.ride:
                before = "" if last is None else f": the one before is {last}"
                raise Unavailable(f"there is no ride {self.ride}{before}")
            if self.ride > extent:
                raise Unavailable(
                    f"no run has read ride {self.ride} yet, only those up to {extent}"
                )
            return self.ride
        [unread] = one_row(connection.execute(UNREAD, [extent, self.before]))
        if unread is not None:
            raise Unavailable(
                f"ride {unread}, taken before {exactly(self.before)}, is not settled, or"
                " no run has read it yet"
            )
        day, midnight = self.before.date(), datetime.combine(self.before, time(), UTC)
        whole = self.before == midnight
        later = [file.first for file in files if file.day > day or (whole and file.day == day)]
        if not whole:
            ends = [self.before, midnight + timedelta(days=1), extent]
            [first] = one_row(connection.execute(FIRST_OF_DAY, ends))
            later += [] if first is None else [first]
        return min(later) - 1 if later else extent

    def ends(self, files: "Sequence[File]", position: int) -> datetime:
        """The moment before which all these rides were taken; of a ride, the end of a day."""
        if self.before is not None:
            return self.before
        last = max((file.day for file in files if file.first <= position), default=date.min)
        # Python has no day after its last, which stands for infinity, too.
        return datetime.combine(min(last, date.max - timedelta(1)), time(), UTC) + timedelta(1)


def exactly(moment: datetime) -> str:
    """A moment, in UTC: whole minutes without seconds."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    whole = "minutes" if not (utc.second or utc.microsecond) else "auto"
    return f"{utc.isoformat(' ', whole)} UTC"


def upto(said: str) -> Upto:
    """A RIDE's id, a DAY or a MOMENT; in UTC, unless it says another zone."""
    if said.isdecimal():
        return Upto(said, ride=int(said))
    try:
        if len(said) == len("2026-11-21"):
            day = date.fromisoformat(said)
            return Upto(said, before=datetime.combine(day, time(), UTC) + timedelta(days=1))
        moment = datetime.fromisoformat(said)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return Upto(said, before=moment.astimezone(UTC))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{said!r} is no day (2026-11-21), moment (2026-11-21T15:00) or ride (the id)"
        ) from None
