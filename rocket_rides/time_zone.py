"""Keeps to a local time that Python's `datetime` can express: less than a day from UTC.

POSIX lets TZ spell out a whole day, as in `XXX24`. Libraries ask for the local time, too, and end
in a traceback there.
"""

import os
import time
from datetime import datetime, timedelta


def settle() -> str:
    """Have a TZ that can't be expressed mean UTC, here and in all that this process starts.

    Returns the sentence that says so, or nothing.
    """
    try:
        for day in range(365):  # in summer it may be an hour more
            (datetime(2026, 1, 1) + timedelta(day)).astimezone()  # noqa: DTZ001 (the local time)
    except ValueError:
        given = os.environ.get("TZ", "")
        os.environ["TZ"] = "UTC0"
        time.tzset()
        return f"TZ={given} is a day or more from UTC, which Python can't express: it means UTC"
    return ""
