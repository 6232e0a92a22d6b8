"""Durations as people write them: `90` or `90s`, `10m`, `12h`, `7d`."""

import re

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST = 36500 * 86400  # a hundred years, so that a time minus a duration is still a time

_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([smhd]?)")


def seconds(text: str) -> float:
    """Parse a duration. Raises ValueError, with a message for a person."""
    if match := _DURATION.fullmatch(text.strip()):
        duration = float(match[1]) * SECONDS[match[2]]
        if duration <= LONGEST:
            return duration
        raise ValueError("a duration of at most 36500d is expected")
    raise ValueError("a duration is expected, such as 90s, 10m, 12h or 7d")
