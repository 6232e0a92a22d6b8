"""The live page's server in the test's own process, on an event loop in its own thread."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx
from aiohttp import web

from demo.page import Demolition
from lab.ports import free_ports
from rocket_rides.settings import Settings
from tests.support.page import Markup, parsed
from tests.support.world import PATIENCE, World
from watch.facts import Facts
from watch.gathering import Gatherer
from watch.server import Site
from watch.watching import Watcher

# A way to break a fleet, for buttons that break nothing.
STOP_REDIS = SimpleNamespace(
    label="Stop Redis", summary="Shut Redis down", meanwhile="Redis is stopped"
)


class Served:
    """The page, as it is served, and a client for it."""

    def __init__(self, config: Settings, watcher: Watcher, site: Site) -> None:
        self.config, self.watcher, self.site = config, watcher, site
        self.ended = threading.Event()
        self.url = f"http://127.0.0.1:{config.page_port}"
        # No connection outlives its request: the server may just be closing an idle one.
        self.client = httpx.Client(
            base_url=self.url,
            timeout=PATIENCE,
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    @property
    def html(self) -> str:
        return self.client.get("/").raise_for_status().text

    def post(self, path: str, **form: Any) -> httpx.Response:
        """Post a form as a browser does from this page."""
        headers = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        return self.client.post(
            path, data={"token": self.site.scene.token, **form}, headers=headers
        )

    @contextmanager
    def ticks(self) -> Iterator[Iterator[Any]]:
        """The events that the page's script receives, decoded from JSON."""
        with self.client.stream("GET", "/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield (
                httpx.Response(200, text=event.data).json() for event in parsed(answer.iter_text())
            )

    def fields(self) -> list[str]:
        """The names of all buttons and fields of the page."""
        elements = Markup(self.html).elements
        return [tag for tag, _ in elements if tag in ("button", "input")]


@contextmanager
def serving(
    config: Settings,
    gather: Callable[[], Facts],
    demolition: Demolition | None = None,
) -> Iterator[Served]:
    """A server of the page, until the end of the block."""
    began = threading.Event()
    found: list[Served] = []

    async def serve() -> None:
        watcher = Watcher(gather)
        site = Site(config, watcher, demolition)
        runner = web.AppRunner(
            site.application(), access_log=None, keepalive_timeout=1, shutdown_timeout=0.1
        )
        await runner.setup()
        server = runner.server
        assert server is not None
        await asyncio.get_running_loop().create_server(server, "127.0.0.1", config.page_port)
        found.append(served := Served(config, watcher, site))
        began.set()
        while not served.ended.is_set():
            await asyncio.sleep(0.02)
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    assert began.wait(PATIENCE)
    try:
        yield found[0]
    finally:
        found[0].client.close()
        found[0].ended.set()
        thread.join(PATIENCE)


def of_world(world: World, **changed: Any) -> Settings:
    """Settings of a page for this world."""
    values: dict[str, Any] = {
        "database_url": world.postgres_url,
        "redis_url": world.redis.url,
        "stream_name": world.stream,
        "data_dir": world.folder,
        "watch_port": free_ports(),
    }
    return Settings(**{**values, **changed})


@contextmanager
def gathering(config: Settings) -> Iterator[Callable[[], Facts]]:
    """Gather the world's real facts."""
    gatherer = Gatherer(config)
    try:
        yield gatherer.gather
    finally:
        gatherer.close()
