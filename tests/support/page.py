"""The live page, in a process of its own or in the test's, a client for it, and its parsers."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, NamedTuple

import httpx
from aiohttp import web
from anyio.from_thread import start_blocking_portal

from demo.page import Demolition, Run
from lab.ports import free_ports
from rocket_rides.settings import Settings
from tests.support.facts import facts
from tests.support.world import PATIENCE, Service, World
from watch.facts import Facts
from watch.server import Site
from watch.watching import Watcher

# A way to break a fleet, for buttons that break nothing.
STOP_REDIS = SimpleNamespace(
    label="Stop Redis", summary="Shut Redis down", meanwhile="Redis is stopped"
)


class Onlooker:
    """A client for a page. It sends what a browser sends from the page itself."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        # No connection outlives its request: the server may just be closing an idle one.
        self.client = httpx.Client(
            base_url=self.url, timeout=PATIENCE, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self.browser = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}

    @property
    def html(self) -> str:
        return self.client.get("/").raise_for_status().text

    @contextmanager
    def events(self, **headers: str) -> Iterator[Iterator["Event"]]:
        """The stream of events that the page's script receives; it does not end."""
        with self.client.stream("GET", "/events", headers=headers) as answer:
            answer.raise_for_status()
            yield parsed(answer.iter_lines())

    @contextmanager
    def ticks(self) -> Iterator[Iterator[Any]]:
        """The same, decoded from JSON."""
        with self.events() as events:
            yield (json.loads(event.data) for event in events)


class Page(Onlooker):
    """`python -m watch` on a world."""

    def __init__(self, world: World) -> None:
        super().__init__(free_ports())
        self.world = world
        self.service: Service = world.service("watch", WATCH_PORT=str(self.port)).says("Listening")


class Served(Onlooker):
    """The page, served from the test's own process."""

    def __init__(self, watcher: Watcher, site: Site, port: int) -> None:
        super().__init__(port)
        self.watcher, self.site = watcher, site

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

    With `run` it is the page of a demo: it has one button, for which `run` breaks the fleet.
    """
    config = Settings(watch_port=free_ports(), **settings)  # type: ignore[arg-type]
    demolition = Demolition(config, {"stop-redis": STOP_REDIS}, run) if run else None

    async def serve() -> tuple[Served, web.AppRunner]:
        watcher = Watcher(look)
        site = Site(config, watcher, demolition)
        runner = web.AppRunner(
            site.application(), access_log=None, keepalive_timeout=1, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", config.page_port).start()
        return Served(watcher, site, config.page_port), runner

    with start_blocking_portal() as loop:
        served, runner = loop.call(serve)
        try:
            yield served
        finally:
            served.client.close()
            loop.call(runner.cleanup)


class Event(NamedTuple):
    """A server-sent event."""

    type: str
    data: str


def parsed(lines: Iterator[str]) -> Iterator[Event]:
    """The server-sent events, each of which has one line of data."""
    fields: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line:
            fields[name] = value
        elif "data" in fields:
            yield Event(fields.pop("event", "message"), fields.pop("data"))
