"""The accounts: every request of every client, over all cells together."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from lab.cells.clients import Look
from lab.chaos.books import clients
from lab.chaos.books.tables import most_of
from lab.chaos.evidence import Ask, Evidence, FinalState, Restore
from rocket_rides.cells import CELL_SIZE

Findings = Iterator[str]


@dataclass
class Books:
    asks: list[Ask]
    finals: dict[int, FinalState]  # by the number of the cell
    restores: list[Restore]
    looks: list[Look] = field(default_factory=list)
    refused: set[Decimal] = field(default_factory=set)  # without a key, and said not to be taken
    found: list[str] = field(default_factory=list)  # in answers and in totals: each a sentence

    @property
    def evidence(self) -> Evidence:
        """All rides and keys. A key that has moved is in two cells, and must name one ride."""
        whole = FinalState({}, {}, {}, {}, {})
        for final in self.finals.values():
            whole.rides |= final.rides
            whole.keys |= final.keys
        return Evidence(self.asks, whole, restores=self.restores)


def keys_agree(books: Books) -> Findings:
    named: dict[str, int] = {}
    for final in books.finals.values():
        for key, ride in final.keys.items():
            if named.setdefault(key, ride) != ride:
                yield f"key {key} names ride {named[key]} in one cell, and {ride} in another"


def rides_are_where_their_ids_lead(books: Books) -> Findings:
    for number, final in books.finals.items():
        for ride in final.rides:
            if ride // CELL_SIZE != number:
                yield f"ride {ride} is in cell {number}"


def nothing_refused_was_taken(books: Books) -> Findings:
    taken = {distance: ride for ride, distance in books.evidence.final.rides.items()}
    for distance in books.refused & taken.keys():
        yield f"ride {taken[distance]} was taken, and its client was told that it was not"


def looks_agree(books: Books) -> Findings:
    """Under its id a ride is found, unless a restore may have undone it."""
    for ask, ride, found in books.looks:
        first = next(answer for answer in ask.answers if answer.ride == ride)
        if found != ask.distance and not any(each.may_undo(first) for each in books.restores):
            yield f"ride {ride} is of {ask.distance} m, and a client found {found or 'none'}"


def check(books: Books) -> list[str]:
    claims = (keys_agree, rides_are_where_their_ids_lead, nothing_refused_was_taken, looks_agree)
    claimed = [claim(books.evidence) for claim in clients.OF_REQUESTS]
    claimed += [claim(books) for claim in claims]
    return [sentence for each in claimed for sentence in most_of(each)] + books.found
