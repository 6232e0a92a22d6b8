"""Moments as people write them, and as the ids of entries have them: milliseconds since 1970."""

import re
from datetime import UTC, datetime, timedelta

from rocket_rides import durations

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)

# As RFC 3339, section 5.6, has it, without leap seconds: Postgres has none.
_HOUR_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
_MOMENT = re.compile(
    rf"\d{{4}}-\d\d-\d\d[Tt ]{_HOUR_MINUTE}:[0-5]\d(?:\.\d+)?(?:[Zz]|[+-]{_HOUR_MINUTE})",
    re.ASCII,
)


def parse(text: str) -> datetime:
    """An RFC 3339 time, in UTC; digits past the microsecond are dropped.

    Raises ValueError, with a message for a person.
    """
    if not _MOMENT.fullmatch(text):
        raise ValueError("a time with its offset is expected, such as 2026-03-28T20:00:00Z")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"there is no such time: {error}") from None


def milliseconds(text: str, now: int) -> int:
    """Parse `10m` (that long before `now`) or an RFC 3339 time; rounded up to a millisecond.

    Raises ValueError, with a message for a person.
    """
    text = text.strip()
    if _MOMENT.fullmatch(text):
        return max(0, -((EPOCH - parse(text)) // MILLISECOND))
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
