"""Numbers, ages and names in words, as a terminal and a log line show them.

With tabular digits they keep their width, so that a number that changes moves nothing else. A page
keeps a number and its unit in one line; a terminal and a program get the `plain` text.
"""

from collections.abc import Iterator, Sequence

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
NO_BREAK = "\N{NO-BREAK SPACE}"


def number(value: int | None, most: int | None = None) -> str:
    """12,345; a dash for what can't be known; 10,000+ for what was counted up to `most`."""
    if value is None:
        return DASH
    return f"{most:,}+" if most and value >= most else f"{value:,}".replace("-", MINUS)


def count(value: int, noun: str, most: int | None = None) -> str:
    """1 record, 2,000 records; entry, entries; 10,000+ records of what was counted up to `most`."""
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{number(value, most)} {noun if value in (1, -1) else plural}"


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


def printable(name: str, most: int = 200) -> str:
    """An arbitrary name or reason, with control characters made visible and its length bounded."""
    return escaped(name if len(name) <= most else f"{name[:most]}\N{HORIZONTAL ELLIPSIS}")


def escaped(line: str) -> str:
    """A line of whatever text, with what can't be printed made visible.

    Else it would drive a terminal, or turn what comes after it around.
    """
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() or c == NO_BREAK else ascii(c)[1:-1] for c in line)


def plain(text: str) -> str:
    """The same with spaces and minus signs that anyone can type, and search for."""
    return text.replace(NO_BREAK, " ").replace(MINUS, "-")


def aligned(rows: Sequence[Sequence[str]], sides: str, width: int | None = None) -> Iterator[str]:
    """The rows as lines with aligned columns; `sides` has < or > for each column.

    Where the lines would be longer than `width`, their columns are closer to each other.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    is_wide = width is not None and sum(widths) + 2 * (len(widths) - 1) > width
    for row in rows:
        cells = zip(row, sides, widths, strict=True)
        gap = " " if is_wide else "  "
        yield gap.join(f"{cell:{side}{wide}}" for cell, side, wide in cells).rstrip()
