"""`python -m demo.page`: the live page, with the buttons that break the demo.

They are there where honcho started this process, both servers are the embedded ones, and only this
machine reaches the page. Anywhere else there is neither a button nor a route, just as in
`python -m watch`. In a fleet it does not end when it can't work (`demo.optional`).
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from demo import optional
from demo.breaking.attempt import run
from demo.breaking.healing import Kind, Say
from demo.breaking.ways import WAYS
from demo.optional import NAME
from rocket_rides import service
from rocket_rides.settings import Settings
from unified_log import process
from unified_log.errors import in_one_line
from watch.__main__ import main
from watch.feed import Mood
from watch.guards import is_loopback
from watch.page import Breakage
from watch.watching import Watcher

logger = logging.getLogger("watch")

Run = Callable[[str, Settings, Say], None]


class Demolition:
    """The ways to break the fleet: one at a time, each in a thread, as it may take a minute.

    That all is well again is said only after a later look, so that the page shows it, too.
    """

    def __init__(self, config: Settings, ways: Mapping[str, Any], run: Run) -> None:
        self._config, self._run = config, run
        self.ways = ways
        self._later: list[tuple[float, Callable[[], None]]] = []  # calls, and since when they wait

    def watch(self, watcher: Watcher, breakage: Breakage) -> None:
        """Tell this watcher what happens, and keep `breakage` up to date."""
        self._watcher, self._breakage = watcher, breakage
        watcher.after_look = self._after_look

    def begin(self, name: str) -> str:
        """Begin to break the fleet in the way `name`; returns why not, or nothing."""
        if self._breakage.way:
            return f"{_button(self.ways[self._breakage.way])} is still under way"
        way = self.ways[name]
        self._breakage.way, self._breakage.going_on = name, way.summary
        self._breakage.meanwhile = way.meanwhile
        self._watcher.say(f"{_button(way)} was pressed", "fault")
        work = partial(self._work, name, asyncio.get_running_loop())
        threading.Thread(target=work, name=name, daemon=True).start()
        return ""

    def _work(self, name: str, loop: asyncio.AbstractEventLoop) -> None:
        def say(line: str, kind: Kind = Kind.NEWS) -> None:
            loop.call_soon_threadsafe(self._say, line, kind)

        try:
            self._run(name, self._config, say)
        except Exception as error:
            reason = in_one_line(error)
            logger.warning("%s: %s", name, reason)
            told = partial(self._tell, reason[:1].upper() + reason[1:], "fault")
            loop.call_soon_threadsafe(self._once_seen, told)
        # One look shows that it was under way, the next one that it is over.
        over = partial(self._once_seen, self._over)
        loop.call_soon_threadsafe(self._once_seen, over)

    def _say(self, line: str, kind: Kind) -> None:
        if line.startswith(" "):  # a total, which the page shows by itself
            return
        if kind is Kind.CLAIM:
            self._once_seen(partial(self._tell, line, "healed"))
        else:  # at once, before a look shows its effects
            self._tell(line, "news")

    def _tell(self, line: str, mood: Mood) -> None:
        words = line.replace("`", "").strip()  # backquotes, which mark commands
        self._breakage.going_on = words
        self._watcher.say(words, mood, narrated=True)

    def _once_seen(self, call: Callable[[], None]) -> None:
        """Call it after a look that begins from now on."""
        self._later.append((asyncio.get_running_loop().time(), call))
        self._watcher.hurry()

    def _after_look(self, began: float) -> None:
        while self._later and self._later[0][0] < began:
            _, call = self._later.pop(0)
            call()

    def _over(self) -> None:
        self._breakage.way = ""


def _button(way: Any) -> str:
    return f"“{way.label}”"


def in_the_demo(config: Settings) -> Demolition | None:
    """The buttons, if this is the demo; else None."""
    if not (
        os.environ.get(NAME)
        and config.embedded_postgres
        and config.embedded_redis
        and is_loopback(config.watch_host)
    ):
        return None
    return Demolition(config, WAYS, run)


if __name__ == "__main__":
    process.take_no_arguments("demo.page", __doc__)
    service.run(partial(optional.run, "the live page", partial(main, in_the_demo)))
