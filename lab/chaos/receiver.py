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
from typing import Self

from aiohttp import web

from demo.embedded.failures import ServerFailed
from lab.chaos.apart import Apart
from lab.chaos.deliveries import PATH, TAKEN, Delivery, Mood, judge

HOST = "127.0.0.1"
BACKLOG = 128
PAGE = 10_000  # deliveries that are handed over at once


class Site:
    """The server, on the event loop of its process."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.mood = Mood.WELL
        self.deliveries: list[Delivery] = []
        # It is bound and never listens: it keeps the port ours while the server is away.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind((HOST, 0))
        self._recovered = asyncio.Event()
        self._application = web.Application()
        self._application.router.add_route("*", "/{any:.*}", self._answer)

    async def listen(self) -> int:
        """The port."""
        port: int = self._place.getsockname()[1]
        self._runner = web.AppRunner(self._application, access_log=None, shutdown_timeout=0)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, port, backlog=BACKLOG, reuse_address=True).start()
        return port

    async def fail(self, mood: Mood) -> None:
        self.mood = mood
        self._recovered.clear()
        if mood is Mood.AWAY:
            await self._runner.cleanup()  # and ends all connections

    async def recover(self) -> None:
        was, self.mood = self.mood, Mood.WELL
        self._recovered.set()
        if was is Mood.AWAY:
            await self.listen()

    async def _answer(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.path if request.method == "POST" else request.method
        delivery = judge(self.secret, self.mood, path, headers, await request.read())
        self.deliveries.append(delivery)
        if delivery.status is None:
            if self.mood is Mood.HANGING:
                await self._recovered.wait()
            elif request.transport:
                request.transport.write(b"HTTP/1.1 204 No Con")
            if request.transport:  # the client may have hung up meanwhile
                request.transport.close()
        return web.Response(status=delivery.status or TAKEN)

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
