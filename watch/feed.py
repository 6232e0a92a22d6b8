"""The feed: what happened, in words, the newest first, kept in memory for a visitor to see.

Lines of a narration that come at once, with nothing between them, are one event in reading order.
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
    """Something that happened; `words` may be several lines."""

    at: datetime
    mood: Mood
    words: str
    is_narrated: bool = False  # said by a way of breaking the fleet

    def goes_on_with(self, event: "Event") -> bool:
        """Whether the event is the next line of this narration: at once, and in the same mood."""
        return (
            self.is_narrated
            and event.is_narrated
            and event.mood == self.mood
            and event.at <= self.at + AT_ONCE
        )


class Feed:
    """The newest KEPT events, in the order in which they became known."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Event]] = []
        self.changes = 0  # everything that was added, as an event or as a line of one

    def add(self, events: Iterable[Event]) -> None:
        """Add events, the oldest first."""
        for event in events:
            self.changes += 1
            number, newest = self._events[0] if self._events else (0, None)
            if newest and newest.goes_on_with(event):
                self._events[0] = number, replace(newest, words=f"{newest.words}\n{event.words}")
            else:
                self._events.insert(0, (number + 1, event))
                del self._events[KEPT:]

    def newest(self) -> list[tuple[int, Event]]:
        """The events with their numbers, the newest first."""
        return list(self._events)
