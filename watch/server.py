"""The page's HTTP server: routes, headers, and what is refused.

Reading is for everyone who reaches the port. Only the demo's buttons change anything; see
`watch.guards`. Nothing waits for ever: a head, a body, an answer that nobody reads and an idle
connection have time limits.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol
from urllib.parse import parse_qsl

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.log import server_logger

from rocket_rides.settings import Settings
from watch import guards
from watch.broadcast import Broadcast
from watch.page import Breakage, Page, Scene
from watch.page.templates import HERE, POLICY
from watch.watching import Watcher

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

BODY_TIME = 5.0  # seconds
IDLE_TIME = 10.0  # for a request's head, from the start of a connection or after an answer
FORM = "application/x-www-form-urlencoded"
LARGEST_BODY = 4096  # bytes: forms of a token and a name
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without one, a form's Origin is null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
ICON = (HERE / "icon.svg").read_bytes()


class Buttons(Protocol):
    """Ways to break the fleet, each with a button; the demo hands them in."""

    ways: Mapping[str, Any]

    def watch(self, watcher: Watcher, breakage: Breakage) -> None:
        """Tell this watcher what happens, and keep `breakage` up to date."""

    def begin(self, name: str) -> str:
        """Begin to break the fleet in the way `name`; returns why not, or nothing."""


class Site:
    """The handlers of the routes."""

    def __init__(self, config: Settings, watcher: Watcher, buttons: Buttons | None) -> None:
        self._watcher = watcher
        self._is_local = guards.is_loopback(config.watch_host)
        self._buttons = buttons if self._is_local else None
        breakage = Breakage()
        if self._buttons:
            self._buttons.watch(watcher, breakage)
        self.scene = Scene(self._buttons.ways if self._buttons else {}, breakage)
        self.broadcast = Broadcast(watcher, Page(self.scene))
        # Through a proxy no button would work: so this page has no buttons, and no token.
        self._for_proxies = Broadcast(watcher, Page(Scene(breakage=breakage)))

    def application(self) -> web.Application:
        """The routes."""
        application = web.Application(middlewares=[self._guarded], client_max_size=LARGEST_BODY)
        application.router.add_get("/", self.page)
        application.router.add_get("/events", self.events, allow_head=False)
        application.router.add_get("/metrics", self.metrics)
        application.router.add_get("/status.json", self.status)
        application.router.add_get("/healthz", self.health)
        application.router.add_get("/icon.svg", self.icon)
        if self._buttons:
            application.router.add_post("/break", self.demolish)
        application.cleanup_ctx.append(self._watching)
        application.on_response_prepare.append(_add_headers)
        application.on_shutdown.append(self._end_streams)
        return application

    def _for(self, request: web.Request) -> Broadcast:
        return self._for_proxies if guards.is_proxied(request.headers) else self.broadcast

    async def page(self, request: web.Request) -> web.Response:
        whole = await self._for(request).document()
        response = web.Response(body=whole, content_type="text/html", charset="utf-8")
        response.enable_compression()
        return response

    async def events(self, request: web.Request) -> web.StreamResponse:
        return await self._for(request).stream(request)

    async def metrics(self, request: web.Request) -> web.Response:
        from watch.metrics import render  # only where somebody asks for it: it takes memory

        facts = await self._watcher.fresh()
        body, content_type = render(facts, request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def status(self, _request: web.Request) -> web.Response:
        from watch.status import in_json, status  # likewise

        facts = await self._watcher.fresh()
        return web.Response(text=in_json(facts, status(facts)), content_type="application/json")

    async def health(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def icon(self, _request: web.Request) -> web.Response:
        return web.Response(body=ICON, content_type="image/svg+xml")

    async def demolish(self, request: web.Request) -> web.Response:
        form = await self._form(request)
        assert self._buttons is not None  # noqa: S101 (or else there is no such route)
        way = form.get("way", "")
        if way not in self._buttons.ways:
            raise web.HTTPBadRequest(text="there is no such way to break it\n")
        if refused := self._buttons.begin(way):
            raise web.HTTPConflict(text=f"{refused}\n")
        # No fragment: without scripts the page reloads itself, and would jump there each time.
        return web.Response(status=303, headers={"Location": "/"})

    async def _watching(self, _application: web.Application) -> AsyncIterator[None]:
        watching = asyncio.create_task(self._watcher.run())
        yield
        watching.cancel()

    async def _end_streams(self, _application: web.Application) -> None:
        """End them at once, rather than in the moment when aiohttp gives them up."""
        self.broadcast.ending = self._for_proxies.ending = True
        self._watcher.wake()

    async def _form(self, request: web.Request) -> dict[str, str]:
        """A POST's form. Raises HTTPForbidden unless it comes from this page."""
        if request.content_type != FORM:
            raise web.HTTPUnsupportedMediaType(text=f"a form is expected: {FORM}\n")
        try:
            async with asyncio.timeout(BODY_TIME):
                body = await request.read()
        except TimeoutError:
            raise web.HTTPRequestTimeout(text="the body did not arrive in time\n") from None
        fields = dict(parse_qsl(body.decode(errors="replace")))
        if why := guards.refusal(request.headers, fields.get("token", ""), self.scene.token):
            raise web.HTTPForbidden(text=f"{why}\n")
        return fields

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._is_local and not guards.is_local(request.headers.get("Host", "")):
            return web.Response(status=421, text="the page is at 127.0.0.1 or localhost only\n")
        try:
            return await handler(request)
        except web.HTTPException as answer:
            if answer.status >= 400:
                answer.content_type = "text/plain"
            raise


def log_no_bad_requests() -> None:
    """Have aiohttp log no traceback for what is not HTTP: that is answered, or cut off."""

    def is_ours(record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))

    server_logger.addFilter(is_ours)


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.popall("Server", None)
