"""The zone of the local time, whichever way a machine or a TZ says it; there is always one.

Usually it has a name, such as Europe/Berlin. POSIX also lets TZ spell out the rules (`JST-9`,
`CET-1CEST,M3.5.0,M10.5.0/3`), and a machine's files may contradict one another: then the local time
is what the C library makes of it, which everything else here follows, too.
"""

import logging
import os
import re
import warnings
from datetime import UTC, datetime, timedelta, tzinfo

from tzlocal import reload_localzone

logger = logging.getLogger(__name__)

_NAME = r"([A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_TIME = r"[+-]?\d{1,3}(:\d\d){0,2}"
_DAY = rf",(J?\d{{1,3}}|M\d\d?\.\d\.\d)(/{_TIME})?"
SPELLED_OUT = re.compile(rf":?{_NAME}{_TIME}({_NAME}({_TIME})?({_DAY}{_DAY})?)?", re.ASCII)


class LocalTime(tzinfo):
    """What the C library takes for the local time, with the changes of its clocks."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return _by_the_c_library(moment).utcoffset() if moment else None

    def tzname(self, moment: datetime | None) -> str | None:
        return _by_the_c_library(moment).tzname() if moment else None

    def dst(self, _: datetime | None) -> timedelta | None:
        """It does not say how much of its offset is for the summer."""
        return None

    def fromutc(self, moment: datetime) -> datetime:
        local = moment.replace(tzinfo=UTC).astimezone()
        first = local.replace(tzinfo=self)
        # When a clock is put back, it shows an hour's times twice.
        return first.replace(fold=int(first.utcoffset() != local.utcoffset()))

    def __str__(self) -> str:
        return f"local time, now {datetime.now().astimezone():%Z, %z}"


def local_zone() -> tzinfo:
    """The zone of the local time. A TZ that says nothing is logged, and means UTC."""
    try:
        with warnings.catch_warnings():  # which we don't pass on
            warnings.simplefilter("ignore")
            return reload_localzone()
    except Exception:  # of many kinds: a missing zone, a folder, a broken file, contradictions
        given = os.environ.get("TZ")
    if given and not (SPELLED_OUT.fullmatch(given) and _is_within_a_day()):
        logger.warning("TZ=%s names no time zone that is known here: it means UTC", ascii(given))
        return UTC
    return LocalTime()


def _is_within_a_day() -> bool:
    """Whether it is always less than a day from UTC: POSIX allows a day, `datetime` doesn't."""
    try:
        for day in range(365):
            _by_the_c_library(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(day))
    except ValueError:
        return False
    return True


def _by_the_c_library(moment: datetime) -> datetime:
    return moment.replace(tzinfo=None).astimezone()
