"""The accounts: every request of every client, over all cells together."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal

from lab.cells.clients import Look
from lab.chaos.books import clients
from lab.chaos.books.tables import most_of
from lab.chaos.evidence import Ask, Evidence, FinalState, Restore
from rocket_rides.cells import CELL_SIZE

Findings = Iterator[str]


@dataclass
class Books:
    """What the clients saw, and what each cell, by its number, has in the end."""

    asks: list[Ask]
    finals: dict[int, FinalState]
    restores: dict[int, list[Restore]]
    looks: list[Look] = field(default_factory=list)
    refused: set[Decimal] = field(default_factory=set)  # without a key, and said not to be taken
    found: list[str] = field(default_factory=list)  # in answers and in totals: each a sentence

    def of_cell(self, cell: int) -> Evidence:
        """The evidence as if there were this cell alone, with the answers that name its rides."""
        asks = [
            replace(ask, answers=[each for each in ask.answers if each.ride // CELL_SIZE == cell])
            for ask in self.asks
        ]
        return Evidence(asks, self.finals[cell], restores=self.restores[cell])

    def of_all(self) -> Evidence:
        """All rides and keys. A key that has moved is in two cells, and must name one ride."""
        whole = FinalState({}, {}, {}, {}, {})
        for final in self.finals.values():
            whole.rides |= final.rides
            whole.keys |= final.keys
        return Evidence(self.asks, whole)


def nothing_is_lost(books: Books) -> Findings:
    for cell in books.finals:
        for ask in clients.lost(books.of_cell(cell)):
            ids = [answer.ride for answer in ask.answers]
            yield f"a ride of {ask.distance} m was answered by cell {cell} (as {ids}) and is lost"


def nothing_is_double(books: Books) -> Findings:
    for ask, ids in clients.double(books.of_all()):
        yield f"one ride of {ask.distance} m was asked for (key {ask.key}), but there are {ids}"


def keys_agree(books: Books) -> Findings:
    named: dict[str, int] = {}
    for final in books.finals.values():
        for key, ride in final.keys.items():
            if named.setdefault(key, ride) != ride:
                yield f"key {key} names ride {named[key]} in one cell, and {ride} in another"


def nothing_refused_was_taken(books: Books) -> Findings:
    taken = {distance: ride for ride, distance in books.of_all().final.rides.items()}
    for distance in books.refused & taken.keys():
        yield f"ride {taken[distance]} was taken, and its client was told that it was not"


def looks_agree(books: Books) -> Findings:
    """Under its id a ride is found, unless a restore may have undone it."""
    for ask, ride, found in books.looks:
        first = next(answer for answer in ask.answers if answer.ride == ride)
        restores = books.restores[ride // CELL_SIZE]
        if found != ask.distance and not any(each.may_undo(first) for each in restores):
            yield f"ride {ride} is of {ask.distance} m, and a client found {found or 'none'}"


def as_in_chaos(books: Books) -> Findings:
    yield from clients.every_request_was_answered(books.of_all())
    yield from clients.every_ride_was_asked_for(books.of_all())


CLAIMS = (
    nothing_is_lost,
    nothing_is_double,
    keys_agree,
    nothing_refused_was_taken,
    looks_agree,
    as_in_chaos,
)


def check(books: Books) -> list[str]:
    claimed = [sentence for claim in CLAIMS for sentence in most_of(claim(books))]
    return claimed + books.found


def undone(books: Books) -> int:
    return clients.undone(books.of_all())
