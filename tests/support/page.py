"""The live page, served from the test's own process, and a client for it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from aiohttp import web
from anyio.from_thread import start_blocking_portal

from demo.breaking.ways import WAYS
from demo.page import Demolition, Run
from lab.ports import free_ports
from rocket_rides.settings import Settings
from tests.support import plain_http
from tests.support.facts import facts
from tests.support.world import PATIENCE
from watch import watching
from watch.facts import Facts
from watch.server import Site
from watch.watching import Watcher


class Served:
    """The page, served from the test's own process, and a client for it.

    The client sends what a browser sends from the page itself.
    """

    def __init__(self, watcher: Watcher, site: Site, port: int) -> None:
        self.watcher, self.site, self.port = watcher, site, port
        self.url = f"http://127.0.0.1:{port}"
        # No connection outlives its request: the server may just be closing an idle one.
        self.client = plain_http.client(
            port, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self.browser = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}

    @property
    def html(self) -> str:
        return self.client.get("/").raise_for_status().text

    @contextmanager
    def events(self, **headers: str) -> Iterator[Iterator[str]]:
        """The data of the events that the page's script receives; they do not end."""
        with self.client.stream("GET", "/events", headers=headers) as answer:
            answer.raise_for_status()
            lines = answer.iter_lines()
            yield (line.removeprefix("data: ") for line in lines if line.startswith("data: "))

    @contextmanager
    def ticks(self) -> Iterator[Iterator[Any]]:
        """The same, decoded from JSON."""
        with self.events() as events:
            yield map(json.loads, events)

    def form(self, **changed: str) -> dict[str, str]:
        """The fields of the form that breaks the fleet."""
        return {"token": self.site.scene.token, "way": "stop-redis", **changed}

    def press(self, way: str) -> httpx.Response:
        return self.client.post("/break", data=self.form(way=way), headers=self.browser)


@contextmanager
def serving(
    look: Callable[[], Facts] = facts, run: Run | None = None, **settings: str
) -> Iterator[Served]:
    """A server of the page on an event loop in its own thread, until the end of the block.

    With `run` it is the page of a demo: it has one button, for which `run` breaks the fleet. Looks
    follow one another ten times as fast as they do.
    """
    config = Settings(watch_port=free_ports(), **settings)  # type: ignore[arg-type]
    demolition = Demolition(config, {"stop-redis": WAYS["stop-redis"]}, run) if run else None

    async def serve() -> tuple[Served, web.AppRunner]:
        watcher = Watcher(look)
        site = Site(config, watcher, demolition)
        runner = web.AppRunner(
            site.application(), access_log=None, keepalive_timeout=1, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", config.page_port).start()
        return Served(watcher, site, config.page_port), runner

    with pytest.MonkeyPatch.context() as patch, start_blocking_portal() as loop:
        patch.setattr(watching, "SEEN", watching.SEEN / 10)
        patch.setattr(watching, "UNSEEN", watching.UNSEEN / 10)
        served, runner = loop.call(serve)
        try:
            yield served
        finally:
            served.client.close()
            loop.call(runner.cleanup)
