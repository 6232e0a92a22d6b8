"""One rendering per look, for all onlookers: as a page, and as server-sent events.

An onlooker's first event holds every part of the page; each later one, a second apart, the parts
that changed. All onlookers get the same bytes. One that takes WRITE_TIME to read an event is cut
off; it does not hold up the others, and costs no more memory than two small buffers.
"""

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace

from aiohttp import web

from watch.page import Page, Rendered
from watch.page.templates import VERSION
from watch.watching import Watcher, nothing

MOST_STREAMS = 1000
WRITE_TIME = 10.0  # seconds
BUFFER = 16 * 1024  # bytes in the kernel, which doubles it
RETRY = 500  # milliseconds until a browser connects again


class Broadcast:
    """The newest rendering, and the onlookers' streams."""

    def __init__(self, watcher: Watcher, page: Page) -> None:
        self._watcher, self._page = watcher, page
        self._rendered: Rendered | None = None
        self._of: tuple[object, ...] = ()  # the look, and what was said, that it shows
        self._number = 0  # of the rendering
        self._whole = self._all = self._changed = b""
        self.streams = 0
        self.ending = False

    async def document(self) -> bytes:
        """The page as a document."""
        await self._watcher.fresh()
        rendered = self._render()
        if not self._whole:
            self._whole = self._page.whole(rendered)
        return self._whole

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Send events until the client has gone, is too slow, or the server ends."""
        if self.streams >= MOST_STREAMS:
            return web.Response(
                status=503, text="too many onlookers\n", headers={"Retry-After": "10"}
            )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        self.streams += 1
        try:
            with self._watcher.looking_on():
                await self._send(request, response)
        except ConnectionError:
            pass  # it has gone
        finally:
            self.streams -= 1
        return response

    async def _send(self, request: web.Request, response: web.StreamResponse) -> None:
        await self._watcher.fresh()
        loop, transport = asyncio.get_running_loop(), request.transport
        if transport is None:
            return
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        await response.prepare(request)
        sent, wrote_at = None, loop.time()
        while not self.ending:
            # It gets an event once it has read the last one. Nothing that it misses is kept for it.
            if not transport.get_write_buffer_size():
                self._render()
                await response.write(self._event_after(sent))
                sent, wrote_at = self._number, loop.time()
            elif loop.time() > wrote_at + WRITE_TIME:
                transport.abort()
                return
            await self._watcher.next_look()

    def _event_after(self, sent: int | None) -> bytes:
        """The event after rendering `sent`: what changed, or all parts if it missed a rendering."""
        if sent == self._number:
            return b": nothing new\n\n"
        if sent == self._number - 1:
            return self._changed
        if not self._all:
            rendered = self._rendered
            assert rendered is not None  # noqa: S101 (_render sets it)
            self._all = b"retry: %d\n%s" % (
                RETRY,
                _event(rendered.parts, rendered.feed, version=VERSION),
            )
        return self._all

    def _render(self) -> Rendered:
        """The newest rendering: anew only when there was a look, or something was said, since."""
        watcher = self._watcher
        of = (watcher.looks, watcher.feed.changes, replace(self._page.scene.breakage))
        if self._rendered is None or of != self._of:
            facts = watcher.latest or nothing()
            before = self._rendered
            now = self._page.render(
                facts, watcher.last, watcher.history, watcher.feed.newest(), watcher.starting
            )
            self._rendered, self._of = now, of
            self._number += 1
            self._whole = self._all = b""
            self._changed = _changes(before, now) if before else b""
        return self._rendered


def _changes(before: Rendered, now: Rendered) -> bytes:
    parts = {name: part for name, part in now.parts.items() if before.parts.get(name) != part}
    known = dict(before.feed)
    feed = [each for each in now.feed if known.get(each[0]) != each[1]]
    return _event(
        parts,
        feed,
        flowed=(now.taken or 0) > (before.taken or 0),
        sent=(now.sent or 0) > (before.sent or 0),
    )


def _event(parts: Mapping[str, str], feed: Sequence[tuple[str, str]], **more: object) -> bytes:
    tick = {"version": "", "parts": parts, "feed": feed, "flowed": False, "sent": False, **more}
    return b"data: %s\n\n" % json.dumps(tick, separators=(",", ":")).encode()
