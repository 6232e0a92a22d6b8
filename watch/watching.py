"""Looks at the fleet at most once a second, for everyone: the page, its onlookers and the metrics.

While somebody looks on, once a second; else every UNSEEN seconds, so that the feed and the charts
go on. Gathering blocks, so it has a thread of its own: a look that hangs delays nobody, not even
the end of this process. A look that fails is logged, tells nothing, and is followed by others.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from unified_log.errors import in_one_line
from watch.events import Events
from watch.facts import Database, Facts, Server
from watch.feed import Event, Feed, Mood
from watch.history import History

logger = logging.getLogger("watch")

SEEN = 1.0  # seconds between looks while somebody looks on
UNSEEN = 5.0
STARTING = 60.0  # seconds in which servers that were never there are not yet missed
PATIENCE = 3.0  # seconds that anyone waits for a look: more than a look can take

Gather = Callable[[], Facts]
After = Callable[[float], None]  # is given when the look began, by the loop's clock


class Watcher:
    """The newest facts, and what became of earlier ones. Belongs to one event loop."""

    def __init__(self, gather: Gather) -> None:
        self._gather, self._looking = gather, ThreadPoolExecutor(1)
        self._events = Events()
        self._next: asyncio.Future[None] | None = None
        self._wanted = asyncio.Event()
        self._looked_at = float("-inf")
        self._failure = ""  # of the last look
        self._began: float | None = None
        self.starting = True  # until both servers were there; for STARTING seconds at most
        self.latest: Facts | None = None
        self.last: tuple[datetime, Database] | None = None  # what Postgres last said, and when
        self.looks = 0  # that were completed
        self.onlookers = 0
        self.history = History()
        self.feed = Feed()
        self.after_look: After = lambda began: None

    async def run(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            self._wanted.clear()
            self._take(await self._look_or_nothing(), began)
            self._looked_at = began
            await asyncio.sleep(max(0.0, began + SEEN - loop.time()))
            if not self.onlookers:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(began + UNSEEN):
                        await self._wanted.wait()

    async def fresh(self) -> Facts:
        """Facts that are not older than a second, or the newest if none come in time."""
        if self.latest and asyncio.get_running_loop().time() < self._looked_at + SEEN:
            return self.latest
        self.hurry()
        await self.next_look()
        return self.latest or nothing()

    def hurry(self) -> None:
        """Look again as soon as the last look is a second old, even if nobody looks on."""
        self._wanted.set()

    async def next_look(self) -> None:
        """Wait until a look is completed, for PATIENCE seconds at most."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await asyncio.shield(self._next)

    def wake(self) -> None:
        """End the wait of all who wait for a look."""
        if self._next and not self._next.done():
            self._next.set_result(None)
        self._next = None

    @contextmanager
    def looking_on(self) -> Iterator[None]:
        """Somebody looks on during this block."""
        self.onlookers += 1
        self.hurry()
        try:
            yield
        finally:
            self.onlookers -= 1

    def say(self, line: str, mood: Mood = "news", *, narrated: bool = False) -> None:
        """Add to the feed what the facts do not tell.

        Lines that are `narrated`, and come at once, are one event.
        """
        self.feed.add([Event(datetime.now(UTC), mood, line, narrated)])

    def _take(self, facts: Facts, began: float) -> None:
        self.latest = facts
        self._began = began if self._began is None else self._began
        self.starting = starting = self.starting and began < self._began + STARTING
        if facts.postgres.up and facts.redis.up:
            self.starting = False
        if facts.database:
            self.last = facts.at, facts.database
        self.looks += 1
        try:
            self.feed.add(self._events.since_last(facts, starting))
            self.history.add(facts, time.monotonic())
        except Exception:  # whatever it is, the numbers are worth more than the feed
            logger.exception("what happened since the last look can't be told")
        try:
            self.after_look(began)
        except Exception:
            logger.exception("what was to follow this look failed")
        self.wake()

    async def _look_or_nothing(self) -> Facts:
        try:
            loop = asyncio.get_running_loop()
            facts = await loop.run_in_executor(self._looking, self._gather)
        except Exception as error:
            if repr(error) != self._failure:
                self._failure = repr(error)
                logger.exception("a look at the fleet failed; the next one may succeed")
            return nothing(f"this look failed: {in_one_line(error)}")
        self._failure = ""
        return facts


def nothing(why: str = "not looked at yet") -> Facts:
    """What is known without a look."""
    unknown = Server(False, why)
    return Facts(datetime.now(UTC), unknown, unknown, None, None)
