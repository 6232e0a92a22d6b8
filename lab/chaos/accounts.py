"""What each reader said of what it also counts in Postgres: one account for a reader.

A reader speaks after its commit. So a line stands for something that was committed; what was
committed and never said is limited by the interruptions: a process that was killed, or a session
that failed, after which the answer to its last commit may be missing.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from pathlib import Path
from typing import NamedTuple

from lab.chaos import logs
from lab.chaos.service import ENDED, Exit
from rocket_rides.distance import EXACT

# A session can fail again, for the same reason and so without a word, in its first round.
FAILURES = 3
HOUR, DAY = 3600, 86_400  # seconds


class Now(NamedTuple):
    """One moment, on two clocks, in seconds."""

    of_day: float  # local time, as the lines have it
    monotonic: float


class Tally(NamedTuple):
    """What one line tells of, or several."""

    gaps: int = 0
    rides: int = 0  # in those gaps
    metres: Decimal = Decimal(0)
    skipped: int = 0
    crashes: int = 0
    news: int = 0  # rides that were counted, each gap as one

    @property
    def counted(self) -> int:
        """Rides that were counted, those in gaps included."""
        return self.news - self.gaps + self.rides


@dataclass
class Account:
    """All that a reader said, each line with its time on the monotonic clock, to the second."""

    lines: list[tuple[float, Tally]] = field(default_factory=list)
    interruptions: int = 0  # rounds that may have been committed without a word
    uncounted: int = 0  # crashes whose process ended before it can have counted them

    def sum(self, of: Callable[[float], bool] = lambda _: True) -> Tally:
        """What was said at the moments `of` which it is to be summed."""
        chosen = [tally for at, tally in self.lines if of(at)]
        with localcontext(EXACT):
            metres = sum((tally.metres for tally in chosen), Decimal(0))
        gaps, rides, _, skipped, crashes, news = (
            sum(column) for column in zip(Tally(), *chosen, strict=True)
        )
        return Tally(int(gaps), int(rides), metres, int(skipped), int(crashes), int(news))


def right_now() -> Now:
    at = time.localtime()
    return Now(at.tm_hour * HOUR + at.tm_min * 60 + at.tm_sec, time.monotonic())


def account(processes: Iterable[tuple[Path, Iterable[Exit]]], now: Now | None = None) -> Account:
    """The account of a reader, by the logs of its processes and how they ended before `now`."""
    result, now = Account(), now or right_now()
    for log, exits in processes:
        result.interruptions += sum(end.status != 0 for end in exits)
        owed = False
        for line in logs.lines(log):
            if tally := _tally(line):
                result.lines.append((_moment(line, now), tally))
            if logs.IN_TROUBLE.search(line):
                result.interruptions += FAILURES
            if logs.CRASHED_AFTER_MOVE.search(line):
                result.interruptions += 1
            if ENDED in line:
                result.uncounted += owed
                owed = False
            elif logs.CRASHED.search(line):
                owed = True
            elif logs.AT_WORK.search(line):
                owed = False
        result.uncounted += owed
    return result


def _tally(line: str) -> Tally | None:
    if found := logs.HEALED_METRES.search(line):
        return Tally(gaps=1, rides=int(found[1]), metres=Decimal(found[2]))
    if found := logs.MARKED.search(line):
        return Tally(gaps=int(found[3] or 0), rides=int(found[1]), metres=Decimal(found[2]))
    if found := logs.SKIPPED.search(line):
        return Tally(skipped=int(found[1]))
    if found := logs.COUNTED.search(line):
        return Tally(news=int(found[1]))
    if logs.CRASHED.search(line):
        return Tally(crashes=1)
    return None


def _moment(line: str, now: Now) -> float:
    """When a line was written, on the monotonic clock, by its time of day: within the last day."""
    hours, minutes, seconds = (int(part) for part in line.split()[0].split(":"))
    ago = now.of_day - (hours * HOUR + minutes * 60 + seconds)
    return now.monotonic - ((ago + HOUR) % DAY - HOUR)  # a clock may be set back
