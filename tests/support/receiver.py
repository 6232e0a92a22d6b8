"""A receiver of receipts: a real HTTP server on loopback that does what a test tells it.

It runs on a thread of its own and keeps every request that was complete. It answers each as its
`behaviour` says, which a test may replace at any time: a function from a Request to an Answer.
"""

import asyncio
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
    closes: bool = False  # after its answer
    hangs: bool = False  # it never answers
    endless: bool = False  # it never stops sending the body

    def __call__(self, _: Request) -> "Answer":
        return self

    @property
    def response(self) -> bytes:
        if self.raw is not None:
            return self.raw
        headers = dict(self.headers)
        if self.endless:
            headers["Content-Type"] = "text/plain"  # no length: it ends with the connection
        elif self.status != 204:
            headers["Content-Length"] = str(len(self.body))
        lines = [f"HTTP/1.1 {self.status} Whatever", *(f"{k}: {v}" for k, v in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


Behaviour = Callable[[Request], Answer]

ACCEPT = Answer()
HANG = Answer(hangs=True)
GARBAGE = Answer(raw=b"\x00\xff this is not HTTP\r\n\r\n", closes=True)
ENDLESS = Answer(200, endless=True)
DISCONNECT = Answer(raw=b"", closes=True)
CUT_SHORT = Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", closes=True)


def refuse(status: int, **headers: str) -> Answer:
    """Answer with this status; `Retry_After="1"` becomes the header Retry-After."""
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()})


def redirect(url: str) -> Answer:
    return Answer(302, {"Location": url})


class Receiver:
    """The server; a context manager. It listens from the start, until `goes_away`.

    With `tls` it speaks https.
    """

    def __init__(
        self, behaviour: Behaviour = ACCEPT, port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.port = port or free_ports()
        self.tls = tls
        self.behaviour = behaviour
        self.requests: list[Request] = []
        self.connections = 0  # that were ever made
        self.open: set[_Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None

    def __enter__(self) -> "Receiver":
        self._thread.start()
        self.comes_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.goes_away()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

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
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()

    def comes_back(self) -> None:
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    async def _listen(self) -> None:
        self._server = await self._loop.create_server(
            lambda: _Connection(self),
            "127.0.0.1",
            self.port,
            backlog=1024,
            reuse_address=True,
            ssl=self.tls,
        )

    async def _close(self) -> None:
        if self._server:
            self._server.close()
            self._server = None
        for connection in list(self.open):
            connection.transport.abort()


class _Connection(asyncio.Protocol):
    """One connection: request after request, each answered before the next is read."""

    transport: Any

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._unread = b""
        self._answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._receiver.connections += 1
        self._receiver.open.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._receiver.open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._take()

    def _take(self) -> None:
        while not self._answering and not self.transport.is_closing():
            head, end, rest = self._unread.partition(b"\r\n\r\n")
            if not end:
                return
            first, *lines = head.decode("latin-1").split("\r\n")
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            length = int(headers.get("content-length", 0))
            if len(rest) < length:
                return
            body, self._unread = rest[:length], rest[length:]
            request = Request(first.split()[1], headers, body)
            answer = self._receiver.behaviour(request)
            self._receiver.requests.append(request)
            if answer.delay:
                self._answering = True
                self._loop.call_later(answer.delay, self._answer, answer)
            else:
                self._answer(answer)

    def _answer(self, answer: Answer) -> None:
        self._answering = answer.hangs or answer.endless
        if answer.hangs or self.transport.is_closing():
            return
        self.transport.write(answer.response)
        if answer.endless:
            self._pour()
        elif answer.closes:
            self.transport.close()
        elif answer.delay:
            self._take()

    def _pour(self) -> None:
        if not self.transport.is_closing():
            if self.transport.get_write_buffer_size() < 1_000_000:
                self.transport.write(b"x" * 65_536)
            self._loop.call_later(0.001, self._pour)
