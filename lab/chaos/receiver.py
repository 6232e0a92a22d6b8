"""The receiver of receipts: a real HTTP server, which notes each request.

On demand it fails, in one of the ways that `Mood` lists.
"""

import asyncio
import base64
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Self

from aiohttp import web

from lab.chaos.deliveries import PATH, TAKEN, Delivery, Mood, judge
from lab.chaos.loop import Loop
from lab.ports import free_ports

HOST = "127.0.0.1"
BACKLOG = 128
LATE = 1.5  # seconds; longer than the fleet's RECEIPT_TIMEOUT


class Receiver:
    """Listens on `port` of 127.0.0.1, and accepts what is signed with `secret`."""

    def __init__(self) -> None:
        self.secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
        self.busy = threading.Lock()  # held by the one fault that acts on it
        self.deliveries: list[Delivery] = []
        self.port = free_ports()
        self._mood = Mood.WELL
        self._recovered = asyncio.Event()
        self._application = web.Application()
        self._application.router.add_route("*", "/{any:.*}", self._answer)
        self._runner: web.AppRunner | None = None
        self._loop = Loop()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    def start(self) -> None:
        self._loop.start()
        self._loop.do(self._listen())

    async def _listen(self) -> None:
        runner = web.AppRunner(self._application, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, HOST, self.port, backlog=BACKLOG, reuse_address=True)
        await site.start()
        self._runner = runner

    @contextmanager
    def failing(self, mood: Mood) -> Iterator[None]:
        """Fail in this way for as long as the block takes."""
        self._loop.do(self._become(mood))
        try:
            yield
        finally:
            self._loop.do(self._become(Mood.WELL))

    async def _become(self, mood: Mood) -> None:
        was, self._mood = self._mood, mood
        if mood is Mood.WELL:
            self._recovered.set()
        else:
            self._recovered.clear()
        if mood is Mood.AWAY:
            await self._leave()
        elif was is Mood.AWAY:
            await self._listen()

    async def _leave(self) -> None:
        """Stop listening, and end all connections."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.path if request.method == "POST" else request.method
        delivery = judge(self.secret, self._mood, path, headers, await request.read())
        self.deliveries.append(delivery)
        if delivery.status is None:
            if self._mood is Mood.HANGING:
                await self._recovered.wait()
            elif request.transport:
                request.transport.write(b"HTTP/1.1 204 No Con")
            if request.transport:  # the client may have hung up meanwhile
                request.transport.close()
        elif self._mood is Mood.LATE:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._recovered.wait(), LATE)
        return web.Response(status=delivery.status or TAKEN)

    def stop(self) -> None:
        """Stop listening, and end all connections; what came is kept."""
        if self._runner:
            self._loop.do(self._leave())
        self._loop.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
