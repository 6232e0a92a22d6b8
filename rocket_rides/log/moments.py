"""Moments as people write them, and as the ids of entries have them: milliseconds since 1970."""

import re
from datetime import UTC, datetime, timedelta

from rocket_rides import durations

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

# As RFC 3339 has it: T, t or a space between, seconds, and always an offset.
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_MOMENT = re.compile(
    rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt ]({_TIME})([Zz]|[+-][0-9]{{2}}:[0-9]{{2}})"
)


def milliseconds(text: str, now: int) -> int:
    """Parse `10m` (that long before `now`) or an RFC 3339 time; rounded up to a millisecond.

    Raises ValueError, with a message for a person.
    """
    if match := _MOMENT.fullmatch(text.strip()):
        try:
            date, time, offset = match.groups()
            moment = datetime.fromisoformat(f"{date}T{time}{offset.upper()}")
            since_epoch = moment - EPOCH
        except (ValueError, OverflowError) as error:
            raise ValueError(f"there is no such time: {error}") from None
        return max(0, -(-since_epoch // MILLISECOND))
    try:
        return max(0, int(now - durations.seconds(text) * 1000))
    except ValueError:
        raise ValueError(
            "either a duration is expected, such as 90s, 10m, 12h or 7d,"
            " or a time with its offset, such as 2026-03-28T20:00:00Z"
        ) from None


def shown(milliseconds: int) -> str | None:
    """In RFC 3339, in UTC; None for a time beyond the year 9999."""
    try:
        moment = EPOCH + milliseconds * MILLISECOND
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
