"""The zone of the local time, whichever way a machine or a TZ says it; there is always one.

Usually it has a name, such as Europe/Berlin. POSIX also lets TZ spell out the rules (`JST-9`,
`CET-1CEST,M3.5.0,M10.5.0/3`), and a machine's files may contradict one another: then the local time
is what the C library makes of it, which everything else here follows, too.
"""

import calendar
import logging
import os
import re
import time
import warnings
from datetime import UTC, datetime, timedelta, tzinfo

from tzlocal import reload_localzone

logger = logging.getLogger(__name__)

_NAME = r"([A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)"
_TIME = r"[+-]?\d{1,3}(:\d\d){0,2}"
_DAY = rf",(J?\d{{1,3}}|M\d\d?\.\d\.\d)(/{_TIME})?"
SPELLED_OUT = re.compile(rf":?{_NAME}{_TIME}({_NAME}({_TIME})?({_DAY}{_DAY})?)?", re.ASCII)


A_DAY = 86400  # seconds


class LocalTime(tzinfo):
    """What the C library takes for the local time, with the changes of its clocks."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return timedelta(seconds=_at(moment).tm_gmtoff) if moment else None

    def tzname(self, moment: datetime | None) -> str | None:
        return _at(moment).tm_zone if moment else None

    def dst(self, _: datetime | None) -> timedelta | None:
        """It does not say how much of its offset is for the summer."""
        return None

    def fromutc(self, moment: datetime) -> datetime:
        seconds = time.localtime(calendar.timegm(moment.timetuple())).tm_gmtoff
        first = moment + timedelta(seconds=seconds)
        # When a clock is put back, it shows an hour's times twice.
        return first.replace(fold=int(_at(first).tm_gmtoff != seconds))

    def __str__(self) -> str:
        now = time.localtime()
        return f"local time, now {time.strftime('%Z, %z', now)}"


def _at(moment: datetime) -> time.struct_time:
    """The offset and the name of the zone at a local time.

    As PEP 495 has it: of a time that the clock shows twice, `fold` chooses one; of one that it
    leaves out, it chooses the offset before or the one after. (What `astimezone` makes of the
    latter depends on the version of Python.)
    """
    shown = calendar.timegm(moment.timetuple())
    around = [time.localtime(shown + days * A_DAY) for days in (-1, 1)]
    right = [
        each
        for each in around
        if time.localtime(shown - each.tm_gmtoff).tm_gmtoff == each.tm_gmtoff
    ]
    return right[0] if len(right) == 1 else around[moment.fold]


def local_zone() -> tzinfo:
    """The zone of the local time. A TZ that says nothing is logged, and means UTC."""
    try:
        with warnings.catch_warnings():  # which we don't pass on
            warnings.simplefilter("ignore")
            return reload_localzone()
    except Exception:  # of many kinds: a missing zone, a folder, a broken file, contradictions
        given = os.environ.get("TZ")
    if given and not SPELLED_OUT.fullmatch(given):
        logger.warning("TZ=%s names no time zone that is known here: it means UTC", ascii(given))
        return UTC
    return LocalTime()
