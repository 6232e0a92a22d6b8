"""An onlooker that notes when each total moves: between two moves, it stood still."""

import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise

from lab.chaos.drifts import AWAY
from lab.chaos.observer import Onlooker
from unified_log import database

LOOK = 0.02  # seconds between two looks
TOTALS = "SELECT name, position FROM checkpoints WHERE kind = 'total'"
TIMEOUT = "2s"


class Pauses(Onlooker):
    """Watches the totals of the database that `url` leads to, until it is told to end."""

    def __init__(self, url: Callable[[], str]) -> None:
        super().__init__("onlooker of the totals", url)
        self.moves: defaultdict[str, list[float]] = defaultdict(list)  # on the monotonic clock
        self._at: dict[str, int] = {}

    def look_on(self) -> None:
        while not self.ending.is_set():
            try:
                with closing(
                    database.connect(self._url(), "onlooker", statement_timeout=TIMEOUT)
                ) as connection:
                    while not self.ending.wait(LOOK):
                        self._note(dict(connection.execute(TOTALS).fetchall()))
            except AWAY:
                self.ending.wait(LOOK)

    def _note(self, found: dict[str, int]) -> None:
        now = time.monotonic()
        for name, position in found.items():
            if position != self._at.get(name):
                self._at[name] = position
                self.moves[name].append(now)

    def longest(self, began: float, ended: float) -> dict[str, float]:
        """For each total, the longest time that it stood still in between, in seconds."""
        return {name: longest([*moves], began, ended) for name, moves in sorted(self.moves.items())}


def longest(moves: list[float], began: float, ended: float) -> float:
    """The longest time from one move to the next, of which some part is in this span."""
    pairs = pairwise([*moves, ended])
    spans = (then - move for move, then in pairs if move < ended and then > began)
    return max(spans, default=ended - began)
