"""The feed: what happened, in words, the newest first, kept in memory for a visitor to see.

Lines of a narration that come at once, with nothing between them, are one event, in the order in
which one reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

KEPT = 200  # events
AT_ONCE = timedelta(seconds=1)

Mood = Literal["fault", "healed", "news"]


@dataclass(frozen=True)
class Event:
    """Something that happened."""

    at: datetime
    mood: Mood
    words: str

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.words,)


@dataclass(frozen=True)
class Narration:
    """What a way of breaking the fleet said at one moment."""

    at: datetime
    mood: Mood
    lines: tuple[str, ...]

    @property
    def words(self) -> str:
        return " ".join(self.lines)

    def goes_on_with(self, event: "Happening") -> bool:
        """Whether the event is told at the same moment, in the same mood."""
        return (
            isinstance(event, Narration)
            and event.mood == self.mood
            and event.at <= self.at + AT_ONCE
        )


Happening = Event | Narration


class Feed:
    """The newest KEPT events, in the order in which they became known."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Happening]] = []
        self.changes = 0  # everything that was added, as an event or as a line of one

    def add(self, events: Iterable[Happening]) -> None:
        """Add events, the oldest first."""
        for event in events:
            self.changes += 1
            number, newest = self._events[0] if self._events else (0, None)
            if isinstance(newest, Narration) and newest.goes_on_with(event):
                self._events[0] = number, replace(newest, lines=(*newest.lines, *event.lines))
            else:
                self._events.insert(0, (number + 1, event))
                del self._events[KEPT:]

    def newest(self) -> list[tuple[int, Happening]]:
        """The events with their numbers, the newest first."""
        return list(self._events)
