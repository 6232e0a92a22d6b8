"""Numbers, ages and times in words, as the page and the terminal show them.

Each is as wide as its neighbours with tabular digits, so that a number that changes moves nothing.
The page keeps a number and its unit in one line; a terminal and a program get `plain` spaces.
"""

from datetime import UTC, datetime
from decimal import Decimal

from watch.facts import MOST

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"


def metres(distance: Decimal) -> str:
    """A distance with all of its digits: 1,234.500. Formatting never rounds."""
    return f"{distance:,.3f}".replace("-", MINUS)


def signed(drift: Decimal) -> str:
    """A difference of distances: with its sign, and 0.000 for none."""
    return f"{drift:+,.3f}".replace("-", MINUS) if drift else "0.000"


def number(value: int | None) -> str:
    """12,345; a dash for what can't be known."""
    return DASH if value is None else f"{value:,}".replace("-", MINUS)


def upto_most(value: int | None) -> str:
    """A number that was counted up to MOST: 10,000+ when there may be more."""
    return f"{MOST:,}+" if value is not None and value >= MOST else number(value)


def count(value: int, noun: str) -> str:
    """1 ride, 2,000 rides; entry, entries."""
    return f"{number(value)} {_form(value, noun)}"


def count_upto_most(value: int, noun: str) -> str:
    """The same of what was counted up to MOST: 10,000+ rides."""
    return f"{upto_most(value)} {_form(value, noun)}"


def _form(value: int, noun: str) -> str:
    if value == 1:
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"


def rate(per_second: float | None) -> str:
    """Rides a second: 0.4, 12.3, 2,955."""
    if per_second is None:
        return DASH
    return f"{per_second:,.1f}" if per_second < 100 else f"{per_second:,.0f}"


def age(seconds: float | None) -> str:
    """An age or a lag: 0.4 s, 12 s, 3 min, 2 h, 5 d."""
    if seconds is None:
        return DASH
    if seconds < 99.5:
        return f"{max(seconds, 0):{'.1f' if seconds < 9.95 else '.0f'}}{NO_BREAK}s"
    for limit, unit, name in ((5970, 60, "min"), (172_000, 3600, "h")):
        if seconds < limit:
            return f"{seconds / unit:.0f}{NO_BREAK}{name}"
    return f"{seconds / 86_400:,.0f}{NO_BREAK}d"


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


def clock(moment: datetime) -> str:
    """The time of day: 14:03:22, in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"


def moment(value: datetime) -> str:
    """A time with its date: 22 Nov 14:03, in UTC."""
    utc = value.astimezone(UTC)
    return f"{utc.day} {utc:%b %H:%M}"


def iso(value: datetime) -> str:
    """A time for programs."""
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def printable(name: str) -> str:
    """An arbitrary name or reason, with control characters made visible and its length bounded."""
    short = name if len(name) <= 200 else f"{name[:200]}\N{HORIZONTAL ELLIPSIS}"
    return "".join(c if c.isprintable() or c == NO_BREAK else ascii(c)[1:-1] for c in short)


def plain(text: str) -> str:
    """The same with spaces that anyone can search for."""
    return text.replace(NO_BREAK, " ")


def sentence(text: str) -> str:
    """The same with a capital, unless it begins with a name."""
    begins = text.partition(" ")[0] in ("a", "all", "reconciliation", "the")
    return text[:1].upper() + text[1:] if begins else text
