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
from tests.support.markup import Markup
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
            yield parsed(answer.iter_text())

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
        """The fields of the form that breaks the fleet, as the page has it."""
        return {**Markup(self.html).form("way"), **changed}

    def press(self, way: str) -> httpx.Response:
        form = {"token": self.site.scene.token, "way": way}
        return self.client.post("/break", data=form, headers=self.browser)


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


def parsed(stream: Iterator[str]) -> Iterator[Event]:
    """Parse server-sent events as the HTML standard says; fails at an unknown field."""
    kind, rest = "message", ""
    data: list[str] = []
    for text in stream:
        *lines, rest = (rest + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            match name:
                case "" if not line:
                    if data:
                        yield Event(kind, "\n".join(data))
                    kind, data = "message", []
                case "event":
                    kind = value
                case "data":
                    data.append(value)
                case _:
                    assert name in ("", "id", "retry"), line
