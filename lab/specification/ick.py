"""An Ick of two minutes, and what a leader expects of it."""

from lab.specification.explorer import Value

Set = tuple[int, ...]  # each minute's lowest ride in the set, or 0

EMPTY: Set = (0, 0)


class Ick(Value, frozen=True):
    """One that was never written to is not there."""

    name: int  # its generation
    writes: int = 0
    pset: Set = EMPTY  # the producer set: marked
    cset: Set = EMPTY  # the consumer set: reserved, until it is committed

    def measured(self) -> tuple[int, ...]:
        """What a leader compares: the count of writes, and the sizes of both sets."""
        return self.writes, size(self.pset), size(self.cset)

    def reserve(self, most: int) -> "Ick":
        """Move the lowest into the consumer set, until that has as many."""
        pset, cset = self.pset, self.cset
        while any(pset) and size(cset) < most:
            lowest = members(pset)[0]
            pset, cset = put(pset, lowest, 0), add(cset, lowest, pset[lowest])
        return self.but(pset=pset, cset=cset)


def size(of: Set) -> int:
    return len(of) - of.count(0)


def members(of: Set) -> list[int]:
    """By their lowest ride, then by their name."""
    return sorted(filter(of.__getitem__, range(len(of))), key=of.__getitem__)


def add(to: Set, minute: int, ride: int) -> Set:
    """A minute that is in the set keeps the lower ride."""
    return put(to, minute, min(ride, to[minute] or ride))


def put(to: Set, minute: int, ride: int) -> Set:
    return (*to[:minute], ride, *to[minute + 1 :])


def remove(of: Set, minutes: tuple[int, ...]) -> Set:
    return tuple(0 if minute in minutes else ride for minute, ride in enumerate(of))
