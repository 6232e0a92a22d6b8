"""What a worker has in hand: the rides whose receipts it is to deliver, and the entries for them.

Bounded: a worker reads on only while there is room. What waits for another attempt waits here, and
its entries stay pending under the worker's name; a heartbeat keeps them from being claimed.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass, field
from itertools import count

MOST = 2000  # rides


@dataclass
class Errand:
    """A ride whose receipt is to be delivered, because of some entries, or of a sweep."""

    ride_id: int
    entries: set[str] = field(default_factory=set)  # ids in the stream
    swept: bool = False  # found in Postgres: by the sweep, or because it is to be sent anew
    lost: bool = False  # by the log, as the sweep says
    taken_over: bool = False  # from a worker that is gone
    turn: int = 0  # its place in one of the queues; any other place of this ride is void


class Hand:
    """Every errand is in one of three places: to be attempted, waiting, or neither (under way)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._errands: dict[int, Errand] = {}
        self._rides: dict[str, int] = {}  # by entry
        # Queues of turns and rides; two are heaps, by when and by attempts without an end.
        self._fresh: deque[tuple[int, int]] = deque()
        self._waiting: list[tuple[float, int, int]] = []
        self._suspects: list[tuple[int, int, int]] = []
        self._turns = count(1)

    def __len__(self) -> int:
        return len(self._errands)

    def __contains__(self, ride_id: object) -> bool:
        return ride_id in self._errands

    @property
    def room(self) -> int:
        """How many more it may hold. As many suspects again take no room from the others."""
        suspects = min(len(self._suspects), MOST)
        return max(0, MOST + suspects - len(self._errands))

    @property
    def fresh(self) -> int:
        """How many have not been attempted yet."""
        return len(self._fresh)

    @property
    def entries(self) -> Collection[str]:
        """The ids of all entries in hand."""
        return self._rides.keys()

    def take(
        self,
        ride_id: int,
        entry: str | None,
        *,
        lost: bool = False,
        taken_over: bool = False,
        under_way: bool = False,
    ) -> None:
        """Take up a ride, because of an entry, or else because the sweep found it."""
        errand = self._errands.get(ride_id)
        if errand is None:
            errand = self._errands[ride_id] = Errand(ride_id)
            if not under_way:
                errand.turn = next(self._turns)
                self._fresh.append((errand.turn, ride_id))
        errand.taken_over |= taken_over
        errand.lost |= lost
        if entry is None:
            errand.swept = True
        else:
            errand.entries.add(entry)
            self._rides[entry] = ride_id

    def next(self, most: int, *, fresh_first: bool = False) -> list[Errand]:
        """Up to `most` errands that may be attempted now; from now on they are under way."""
        chosen: list[Errand] = []
        sources = [self._next_due, self._next_fresh]
        for source in reversed(sources) if fresh_first else sources:
            while len(chosen) < most and (errand := source()):
                chosen.append(errand)
        return chosen

    def _next_due(self) -> Errand | None:
        now = self._clock()
        while self._waiting and self._waiting[0][0] <= now:
            _, *turn = heapq.heappop(self._waiting)
            if errand := self._called(*turn):
                return errand
        return None

    def _next_fresh(self) -> Errand | None:
        while self._fresh:
            if errand := self._called(*self._fresh.popleft()):
                return errand
        return None

    @property
    def has_suspects(self) -> bool:
        """Whether there may be one."""
        return bool(self._suspects)

    def next_suspect(self) -> Errand | None:
        """The one that has lost the fewest workers: the innocent come first."""
        while self._suspects:
            _, *turn = heapq.heappop(self._suspects)
            if errand := self._called(*turn):
                return errand
        return None

    def _called(self, turn: int, ride_id: int) -> Errand | None:
        """The errand whose turn it is: none if it was dropped, and perhaps taken up anew, since."""
        errand = self._errands.get(ride_id)
        return errand if errand and errand.turn == turn else None

    def next_due_in(self) -> float:
        """Seconds until the first that waits is due."""
        if self._fresh or self._suspects:
            return 0.0
        return max(0.0, self._waiting[0][0] - self._clock()) if self._waiting else float("inf")

    def postpone(self, ride_id: int, seconds: float) -> None:
        """Not before so many seconds; and no more, if all of its entries are in other hands now."""
        errand = self._errands.get(ride_id)
        if errand and not errand.entries and not errand.swept:
            self._drop(ride_id)
        elif errand:
            errand.taken_over = False
            errand.turn = next(self._turns)
            heapq.heappush(self._waiting, (self._clock() + seconds, errand.turn, ride_id))

    def suspect(self, ride_id: int, unfinished: int) -> None:
        """Only alone."""
        if errand := self._errands.get(ride_id):
            errand.turn = next(self._turns)
            heapq.heappush(self._suspects, (unfinished, errand.turn, ride_id))

    def settle(self, rides: Iterable[int]) -> list[str]:
        """These rides are done: the entries to acknowledge."""
        return [entry for ride_id in rides for entry in self._drop(ride_id)]

    def lose(self, entries: Iterable[str], busy: Container[int]) -> int:
        """Others have these entries now; returns how many errands are given up.

        An attempt under way is not called back: what comes of it is written down all the same.
        """
        given_up = 0
        for entry in entries:
            ride_id = self._rides.pop(entry, None)
            if ride_id is None:
                continue
            errand = self._errands[ride_id]
            errand.entries.discard(entry)
            if not errand.entries and not errand.swept and ride_id not in busy:
                self._drop(ride_id)
                given_up += 1
        return given_up

    def _drop(self, ride_id: int) -> set[str]:
        errand = self._errands.pop(ride_id, None)
        if errand is None:
            return set()
        for entry in errand.entries:
            del self._rides[entry]
        return errand.entries
