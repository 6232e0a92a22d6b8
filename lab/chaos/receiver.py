"""The receiver of the receipts: a real HTTP server, which notes what it is sent.

It fails on demand, in one of the ways that `Mood` lists. It runs in a process of its own.
"""

import asyncio
import base64
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

from demo.embedded.failures import ServerFailed
from lab.chaos.apart import Apart
from lab.chaos.deliveries import PATH, TAKEN, Delivery, Mood, judge

HOST = "127.0.0.1"
BACKLOG = 128
PAGE = 10_000  # deliveries that are handed over at once
REASONS = {204: "No Content", 400: "Bad Request", 410: "Gone", 503: "Service Unavailable"}


class Site:
    """The server, on the event loop of its process."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.mood = Mood.WELL
        self.deliveries: list[Delivery] = []
        self.open: set[_Visit] = set()
        # It is bound and never listens: it keeps the port ours while the server is away.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind((HOST, 0))
        self._server: asyncio.Server | None = None

    async def listen(self) -> int:
        """The port."""
        port: int = self._place.getsockname()[1]
        self._server = await asyncio.get_running_loop().create_server(
            lambda: _Visit(self), HOST, port, backlog=BACKLOG, reuse_address=True
        )
        return port

    async def fail(self, mood: Mood) -> None:
        self.mood = mood
        if mood is Mood.AWAY and self._server:
            self._server.close()
            for visit in list(self.open):
                visit.transport.abort()

    async def recover(self) -> None:
        was, self.mood = self.mood, Mood.WELL
        if was is Mood.AWAY:
            await self.listen()
        for visit in [visit for visit in self.open if visit.hangs]:
            visit.transport.close()

    async def take(self) -> list[Delivery]:
        """Some of what came, in order, each once; none when there is no more."""
        self.deliveries[:], page = self.deliveries[PAGE:], self.deliveries[:PAGE]
        return page


class Receiver:
    """Listens on `port` of 127.0.0.1; whoever signs with `secret` is heard."""

    def __init__(self) -> None:
        self.secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
        self.busy = threading.Lock()  # held by the one fault that acts on it
        self.port = 0
        self._apart: Apart | None = None
        self._taken: list[Delivery] = []

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    def start(self) -> None:
        self._apart = Apart(Site, self.secret)
        self.port = self._apart.ask("listen")

    @property
    def memory(self) -> int:
        """Bytes that its process has had at most."""
        return self._apart.memory if self._apart else 0

    @property
    def deliveries(self) -> list[Delivery]:
        """All that it was sent until now."""
        while self._apart and (page := self._apart.ask("take")):
            self._taken += page
        return self._taken

    @contextmanager
    def failing(self, mood: Mood) -> Iterator[None]:
        """Fail in this way for as long as the block takes."""
        assert self._apart is not None  # noqa: S101 (it has started)
        self._apart.ask("fail", mood)
        try:
            yield
        finally:
            self._apart.ask("recover")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening, and cut all connections; what came is kept."""
        if self._apart:
            with suppress(ServerFailed):  # somebody has ended its process, too
                self.deliveries  # noqa: B018 (it takes the last ones over)
            self._apart.end()
            self._apart = None


class _Visit(asyncio.Protocol):
    """A connection: one request after another, each answered before the next is read."""

    transport: Any

    def __init__(self, site: Site) -> None:
        self.hangs = False
        self._site = site
        self._unread = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._site.open.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._site.open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        while not self.hangs and not self.transport.is_closing():
            head, blank, rest = self._unread.partition(b"\r\n\r\n")
            if not blank:
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            digits = headers.get("content-length", "0")
            length = int(digits) if digits.isdecimal() else 0
            if len(rest) < length:
                return
            body, self._unread = rest[:length], rest[length:]
            method, path, *_ = [*first.split(" "), ""]
            self._answer(path if method == "POST" else first, headers, body)

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> None:
        site = self._site
        delivery = judge(site.secret, site.mood, path, headers, body)
        site.deliveries.append(delivery)
        if delivery.status is None:
            self.hangs = site.mood is Mood.HANGING
            if not self.hangs:
                self.transport.write(b"HTTP/1.1 204 No Con")
                self.transport.close()
            return
        empty = "" if delivery.status == TAKEN else "Content-Length: 0\r\n"
        line = f"HTTP/1.1 {delivery.status} {REASONS[delivery.status]}\r\n{empty}\r\n"
        self.transport.write(line.encode())
