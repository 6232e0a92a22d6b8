"""A receiver of receipts: a real HTTP server on loopback that does what a test tells it.

It runs on a thread of its own and keeps every request that was complete. It answers each as its
`behaviour` says, which a test may replace at any time: a function from a Request to an Answer.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lab.chaos.loop import Loop
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


def refuse(status: int) -> Answer:
    return Answer(status)


class Receiver:
    """The server; a context manager. It listens from the start, until `goes_away`.

    With `tls` it speaks https.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.port = free_ports()
        self.tls = tls
        self.behaviour: Behaviour = ACCEPT
        self.requests: list[Request] = []
        self.connections = 0  # that were ever made
        self._open: dict[asyncio.Task[Any], asyncio.StreamWriter] = {}
        self._loop = Loop()
        self._server: asyncio.Server

    def __enter__(self) -> "Receiver":
        self._loop.start()
        self.comes_back()
        return self

    def __exit__(self, *_: object) -> None:
        self.goes_away()
        self._loop.stop()

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
        self._loop.do(self._close())

    def comes_back(self) -> None:
        self._loop.do(self._listen())

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, backlog=1024, ssl=self.tls
        )

    async def _close(self) -> None:
        self._server.close()
        for task, connection in self._open.items():
            connection.transport.abort()
            task.cancel()
        await asyncio.gather(*self._open)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection: request after request, each answered before the next is read."""
        self.connections += 1
        task = asyncio.current_task()
        assert task
        self._open[task] = writer
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                request = await _next(reader)
                answer = self.behaviour(request)
                self.requests.append(request)
                await asyncio.sleep(answer.delay)
                if answer.hangs:
                    await reader.read()  # until the client hangs up
                writer.write(answer.response)
                while answer.endless:
                    writer.write(b"x" * 65_536)
                    await writer.drain()
                if answer.closes:
                    break
        del self._open[task]
        writer.close()


async def _next(reader: asyncio.StreamReader) -> Request:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(first.split()[1], headers, body)
