"""The table of a drill: what was done, and what the other cell's clients felt of a dead one."""

from collections.abc import Iterator
from statistics import median, quantiles

from lab.cells.books import Books
from lab.cells.drill import CALM, DEAD, Drill
from lab.chaos.books import clients
from lab.progress import counted
from rocket_rides.cells import CELL_SIZE

SLICE = 2.0  # seconds
FEWEST = 20  # rides, for a p99 of a slice


def table(drill: Drill, books: Books) -> str:
    answered = sum(1 for ask in books.asks if ask.answers)
    keyed = sum(1 for ask in books.asks if ask.key)
    figures = {
        "rides asked for": f"{len(books.asks):,}, {keyed:,} of them with a key",
        "rides answered": f"{answered:,}",
        "rides in each cell": ", ".join(f"{len(one.rides):,}" for one in books.finals.values()),
        "answers": counted(drill.crowd.replies.elements()),
        "faults": counted(drill.struck.elements()),
        "moves of slots": f"{drill.mover.moves}, killed {drill.mover.killed} times",
        "undone by restores": f"{clients.undone(books.evidence):,}",
        "lost": f"{len(clients.lost(books.evidence))}",
        "double": f"{len(clients.double(books.evidence))}",
        "a neighbour's p99": _neighbours(drill, books),
    }
    return "\n".join(f"{name:<20} | {figure}" for name, figure in figures.items())


def _neighbours(drill: Drill, books: Books) -> str:
    was: list[float] = []
    now: list[float] = []
    for cell, began in drill.deaths:
        was += _p99s(books, 1 - cell, began - CALM, CALM)
        now += _p99s(books, 1 - cell, began, DEAD)
    if not was or not now:
        return "too few rides"
    before, dead = median(was), median(now)
    return (
        f"{dead * 1000:.0f} ms while the other cell was dead, {before * 1000:.0f} ms before:"
        f" {dead / before:.2f} times (medians of {len(now)} and {len(was)} slices of {SLICE:.0f} s)"
    )


def _p99s(books: Books, cell: int, began: float, seconds: float) -> Iterator[float]:
    """Of each slice, the 99th percentile of the seconds until a 201 that names the cell's ride."""
    answers = [each for ask in books.asks for each in ask.answers if each.ride // CELL_SIZE == cell]
    for number in range(int(seconds / SLICE)):
        first = began + number * SLICE
        took = [each.came - each.sent for each in answers if first <= each.sent < first + SLICE]
        if len(took) >= FEWEST:
            yield quantiles(took, n=100, method="inclusive")[98]
