"""The buttons that break the fleet: in the demo alone.

That is where honcho started this process, both servers are the embedded ones, and only this machine
reaches the page. Anywhere else there is neither a button nor a route.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

from rocket_rides.errors import in_one_line
from rocket_rides.fleet import NAME
from rocket_rides.settings import Settings
from watch.feed import Mood
from watch.guards import is_loopback
from watch.page import Scene
from watch.watching import Watcher

logger = logging.getLogger("watch")

Run = Callable[..., None]


class Demolition:
    """The ways to break the fleet: one at a time, each in a thread, as it may take a minute."""

    def __init__(self, config: Settings, ways: Mapping[str, Any], run: Run) -> None:
        self._config, self._run = config, run
        self.ways = ways

    def begin(self, name: str, scene: Scene, watcher: Watcher) -> str:
        """Begin to break the fleet in the way `name`; returns why not, or nothing."""
        if name not in self.ways:
            return "there is no such way to break it"
        if scene.under_way:
            return f"{_button(self.ways[scene.under_way])} is still under way"
        loop = asyncio.get_running_loop()
        scene.under_way = name

        def say(words: str, mood: Mood = "news") -> None:
            scene.going_on = words
            watcher.say(words, "healed" if words.startswith("Healed") else mood)

        def end() -> None:
            scene.under_way = ""

        def in_loop(call: Callable[..., None], *values: object) -> None:
            loop.call_soon_threadsafe(call, *values)

        def work() -> None:
            try:
                self._run(name, self._config, lambda words: in_loop(say, words))
            except Exception as error:
                logger.warning("%s: %s", name, in_one_line(error))
                in_loop(say, in_one_line(error), "fault")
            in_loop(end)

        watcher.say(f"{_button(self.ways[name])} was pressed", "fault")
        scene.going_on = self.ways[name].summary
        threading.Thread(target=work, name=name, daemon=True).start()
        return ""


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
    # Only here: these take memory.
    import breaking
    from breaking.ways import WAYS

    return Demolition(config, WAYS, breaking.run)
