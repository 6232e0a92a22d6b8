"""The feed: what happened, in words, the newest first, kept in memory for a visitor to see.

What is told late comes to its place in time, among what is at most a minute newer: where a clock
was set back, what is new still comes first. What repeats within a minute is folded into its first
line, so that a consumer that crashes often does not hide the gap that another one healed. Lines of
a narration that come at once, with nothing between them, are one event, in the order in which one
reads.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal

KEPT = 200  # events
FOLDS_FOR = timedelta(seconds=60)
TOLD_LATE = timedelta(seconds=60)
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


@dataclass(frozen=True)
class Crashes:
    """Crashes of a reader that it was told to have, `times` over from `at` to `last`."""

    at: datetime
    who: str
    times: int
    last: datetime

    mood: Mood = "news"

    @property
    def words(self) -> str:
        if self.times == 1:
            return f"{self.who} crashed before a commit, on purpose, and went on"
        times = f"{self.times:,} times, the last at {clock(self.last)}"
        return f"{self.who} crashed before a commit, on purpose, {times}, and went on"

    @property
    def lines(self) -> tuple[str, ...]:
        return (self.words,)


Happening = Event | Narration | Crashes


class Feed:
    """The newest KEPT events. `changes` counts everything that was added or folded."""

    def __init__(self) -> None:
        self._events: list[tuple[int, Happening]] = []
        self._numbers = 0
        self.changes = 0

    def add(self, events: Iterable[Happening]) -> None:
        """Add events, the oldest first, or fold them into earlier ones."""
        for event in events:
            self.changes += 1
            if not self._fold(event):
                self._numbers += 1
                self._events.insert(self._place(event), (self._numbers, event))
                del self._events[KEPT:]

    def newest(self) -> list[tuple[int, Happening]]:
        """The events with their numbers, the newest first."""
        return list(self._events)

    def _place(self, event: Happening) -> int:
        for place, (_, earlier) in enumerate(self._events):
            if not event.at < earlier.at <= event.at + TOLD_LATE:
                return place
        return len(self._events)

    def _fold(self, event: Happening) -> bool:
        for place, (number, earlier) in enumerate(self._events):
            if earlier.at < event.at - FOLDS_FOR or (place and isinstance(event, Narration)):
                break
            if folded := _together(earlier, event):
                self._events[place] = number, folded
                return True
        return False


def _together(earlier: Happening, event: Happening) -> Happening | None:
    """Both as one, if they are the same thing again."""
    if isinstance(earlier, Crashes) and isinstance(event, Crashes) and earlier.who == event.who:
        times = earlier.times + event.times
        return replace(earlier, times=times, last=max(earlier.last, event.last))
    if (
        isinstance(earlier, Narration)
        and isinstance(event, Narration)
        and earlier.mood == event.mood
        and event.at <= earlier.at + AT_ONCE
    ):
        return replace(earlier, lines=(*earlier.lines, *event.lines))
    return None


def clock(moment: datetime) -> str:
    """The time of day: 14:03:22, in UTC."""
    return f"{moment.astimezone(UTC):%H:%M:%S}"
