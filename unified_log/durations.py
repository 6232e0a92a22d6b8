"""Durations as people write them: `90` or `90s`, `10m`, `12h`, `7d`."""

import re

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

_DURATION = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([smhd]?)")


def seconds(text: str) -> float:
    """Parse a duration. Raises ValueError, with a message for a person."""
    if match := _DURATION.fullmatch(text.strip()):
        return float(match[1]) * SECONDS[match[2]]
    raise ValueError("a duration is expected, such as 90s, 10m, 12h or 7d")
