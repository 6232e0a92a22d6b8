"""Distances, rates and sizes in words, as the page, the terminal and the report show them.

`unified_log.words` has the words for numbers, ages and names.

Beware of the decimal context: Python's `-d` and `abs(d)` round a Decimal to 28 digits, and totals
have 38. Formatting does not round, nor do `copy_abs` and `copy_negate`.
"""

import os
import shlex
import sys
from decimal import Decimal
from pathlib import Path

from unified_log.words import DASH, MINUS, NO_BREAK, age

# The states of a ride's receipt, as the schema's function `receipt_state` has them: no attempt has
# begun yet; one is being made; it failed, or its end is not known, and another will follow; the
# receiver has it; it was given up.
QUEUED, IN_FLIGHT, WAITING, DELIVERED, DEAD = "queued", "in flight", "waiting", "delivered", "dead"


def command(module: str) -> str:
    """A module's command as a person can type it where this process began.

    Where there is an .env, honcho reads it.
    """
    python, honcho = Path(sys.executable), Path(sys.executable).with_name("honcho")
    before = f"{_near(honcho)} run " if Path(".env").exists() and honcho.exists() else ""
    return f"{before}{_near(python)} -m {module}"


def _near(program: Path) -> str:
    near = os.path.relpath(program)
    return shlex.quote(str(program) if near.startswith(os.pardir) else near)


def metres(distance: Decimal) -> str:
    """A distance with all of its digits: 1,234.500."""
    return f"{distance:,.3f}".replace("-", MINUS)


def signed(drift: Decimal) -> str:
    """A difference of distances: with its sign, and 0.000 for none."""
    return f"{drift:+,.3f}".replace("-", MINUS) if drift else "0.000"


def of_rides(difference: int) -> str:
    """A difference in rides: +1 ride, -1,200 rides."""
    return f"{difference:+,} ride{'' if abs(difference) == 1 else 's'}".replace("-", MINUS)


def rate(per_second: float | None) -> str:
    """Rides a second: 0.4, 12.3, 2,955."""
    if per_second is None:
        return DASH
    return f"{per_second:,.1f}" if per_second < 100 else f"{per_second:,.0f}"


def latency(seconds: float | None) -> str:
    """A short time: 8 ms, 340 ms, 1.2 s."""
    if seconds is None or seconds >= 1:
        return age(seconds)
    return f"{max(seconds, 0) * 1000:.0f}{NO_BREAK}ms"


def size(value: int | None) -> str:
    """Bytes: 812 B, 1.4 kB, 23 MB."""
    if value is None:
        return DASH
    scaled = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if scaled < 999.5:
            digits = 0 if unit == "B" or scaled >= 99.5 else 1
            return f"{scaled:.{digits}f}{NO_BREAK}{unit}"
        scaled /= 1000
    return f"{scaled:,.1f}{NO_BREAK}TB"
