"""Closings, as the terminal shows them."""

from collections.abc import Iterator, Sequence

from analytics.closings import Row
from analytics.report.proofs import moment
from rocket_rides.words import metres
from unified_log.words import aligned, number, printable


def as_lines(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each, with who closed it, and why it was reopened."""
    if not rows:
        yield "Nothing is closed."
        return
    table = [("closing", "up to position", "rides", "distance, m", "closed", "by", "")]
    for row in rows:
        each, again = row.closing, ""
        if row.reopened_at:
            why = f"{printable(row.reopened_by or '')}: {printable(row.reason or '')}"
            again = f"reopened {moment(row.reopened_at)} by {why}"
        sums = number(each.rides), metres(each.distance)
        at, by = moment(each.closed_at), printable(row.closed_by)
        table.append((str(each.id), number(each.position), *sums, at, by, again))
    yield from aligned(table, ">>>><<<")
