"""A receiver of receipts: a real HTTP server on loopback that does what a test tells it.

It runs on a thread of its own and keeps every request that was complete. It answers each as its
`behaviour` says, which a test may replace at any time: a function from a Request to an Answer.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from weakref import WeakSet

from aiohttp import web
from anyio.from_thread import start_blocking_portal

from lab.ports import free_ports


class Request(NamedTuple):
    """A request as it came in. The names of `headers` are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def ride_id(self) -> int:
        ride_id: int = json.loads(self.body)["data"]["ride_id"]
        return ride_id

    @property
    def webhook_id(self) -> str:
        return self.headers["webhook-id"]


@dataclass
class Answer:
    """What the receiver does with a request. By default: 204."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    delay: float = 0  # seconds before it answers
    raw: bytes | None = None  # instead of an HTTP response
    closes: bool = False  # after that
    hangs: bool = False  # it never answers
    endless: bool = False  # it never stops sending the body

    def __call__(self, _: Request) -> "Answer":
        return self


Behaviour = Callable[[Request], Answer]

ACCEPT = Answer()
HANG = Answer(hangs=True)
GARBAGE = Answer(raw=b"\x00\xff this is not HTTP\r\n\r\n", closes=True)
ENDLESS = Answer(200, endless=True)
DISCONNECT = Answer(raw=b"", closes=True)
CUT_SHORT = Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", closes=True)


def refuse(status: int) -> Answer:
    return Answer(status)


class Receiver:
    """The server; a context manager. It listens from the start, until `goes_away`.

    With `tls` it speaks https.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self.port = port or free_ports()
        self.tls = tls
        self.behaviour: Behaviour = ACCEPT
        self.requests: list[Request] = []
        self.connections = 0  # that ever brought a request
        self._known = WeakSet[asyncio.Transport]()
        self._exits = ExitStack()
        self._runner: web.ServerRunner

    def __enter__(self) -> Self:
        self._loop = self._exits.enter_context(start_blocking_portal())
        self.comes_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.goes_away()
        self._exits.close()

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/receipts"

    @property
    def rides(self) -> Counter[int]:
        """How often each ride's receipt has come, whatever the answer was."""
        return Counter(request.ride_id for request in list(self.requests))

    def of(self, ride_id: int) -> list[Request]:
        """The requests about this ride."""
        return [request for request in list(self.requests) if request.ride_id == ride_id]

    def goes_away(self) -> None:
        """Close all connections and refuse new ones."""
        self._loop.call(self._runner.cleanup)

    def moves_away(self) -> None:
        """Refuse new connections, and go on with those that there are."""
        self._loop.call(self._site.stop)

    def comes_back(self) -> None:
        self._loop.call(self._listen)

    @property
    def open_connections(self) -> int:
        return len(self._server.connections)

    async def _listen(self) -> None:
        self._server = web.Server(self._serve, access_log=None)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.01)
        await self._runner.setup()
        host, runner = "127.0.0.1", self._runner
        self._site = web.TCPSite(runner, host, self.port, ssl_context=self.tls, backlog=1024)
        await self._site.start()

    async def _serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        transport = incoming.transport
        assert transport
        self.connections += transport not in self._known
        self._known.add(transport)
        headers = {name.lower(): value for name, value in incoming.headers.items()}
        request = Request(incoming.path_qs, headers, await incoming.read())
        answer = self.behaviour(request)
        self.requests.append(request)
        await asyncio.sleep(answer.delay)
        if answer.raw is not None:
            transport.write(answer.raw)
        if answer.closes:
            transport.close()
        elif answer.hangs or answer.raw is not None:
            await asyncio.Event().wait()  # until the client hangs up
        if answer.endless:
            response = web.StreamResponse(status=answer.status)
            await response.prepare(incoming)
            with suppress(ConnectionError):
                while True:
                    await response.write(b"x" * 65_536)
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
