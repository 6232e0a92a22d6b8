"""A TCP proxy in front of a server's Unix socket, which plays the network between them.

It can cut connections, lead new ones to another server after a fail-over, be slow, or carry only
one direction for a while. While the server accepts nobody, it closes new connections at once.

Pieces of data keep their order, each with its own delay. The end of a connection is held up like
data: the server still sees a client that hung up connected, and its last request may arrive later.

The kernel's own traffic control (tc, netem) would not do: it takes root and a kernel that has it,
and it can't tell connections apart, nor an answer from a request.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum
from pathlib import Path

from anyio.from_thread import start_blocking_portal

HOST = "127.0.0.1"
PIECE = 1 << 16  # bytes; the most that is carried at a time


class Way(Enum):
    REQUESTS = "requests"
    ANSWERS = "answers"


class Proxy:
    """Listens on `port` of 127.0.0.1; new connections lead to the Unix socket `server`, if any."""

    def __init__(self, server: Path | None) -> None:
        self.port = 0
        self.server = server  # None refuses connections
        # While set, a connection is cut when the server answers: its client never gets the answer.
        self.loses_answers = False
        self.longest_delay = 0.0  # seconds, of each piece of data
        self.connections: set[Connection] = set()
        self._is_free = {way: asyncio.Event() for way in Way}
        self._exits = ExitStack()

    def start(self) -> None:
        for event in self._is_free.values():
            event.set()
        self._portal = self._exits.enter_context(start_blocking_portal())
        self._portal.call(self._listen)

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._connect, HOST, 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _connect(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.connections.add(connection := Connection(client))
        try:
            if self.server is None:
                raise ConnectionRefusedError
            answers, server = await asyncio.open_unix_connection(str(self.server))
        except OSError:
            connection.cut()
        else:
            connection.ends.append(server)
            if client.is_closing():  # it was cut in the meantime
                connection.cut()
            await asyncio.gather(
                self._carry(Way.REQUESTS, connection, requests, server),
                self._carry(Way.ANSWERS, connection, answers, client),
            )
        self.connections.discard(connection)

    async def _carry(
        self,
        way: Way,
        connection: "Connection",
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
    ) -> None:
        """Carry data one way, until one side hangs up."""
        while not target.is_closing():
            try:
                data = await source.read(PIECE)
            except OSError:  # a reset is an end, too
                data = b""
            if data and way is Way.ANSWERS and self.loses_answers:
                connection.cut()
            connection.waits.add(way)
            if self.longest_delay:
                await asyncio.sleep(random.uniform(0, self.longest_delay))
            await self._is_free[way].wait()
            connection.waits.discard(way)
            target.write(data)
            if not data:
                target.close()

    def cut(self, is_meant: "Callable[[Connection], bool]" = lambda _: True) -> None:
        """Cut these connections, or all: no further request of theirs reaches the server."""

        def cut() -> None:
            for connection in self.connections:
                if is_meant(connection):
                    connection.cut()

        self._portal.call(cut)

    def hold_up(self, way: Way) -> None:
        """Carry nothing this way from now on, without closing connections."""
        self._portal.call(self._is_free[way].clear)

    def clear_up(self, way: Way, *, deliver: bool) -> None:
        """End delays: deliver what was held up, or cut the connections that have any of it."""
        if not deliver:
            self.cut(lambda connection: way in connection.waits)
        self._portal.call(self._is_free[way].set)

    def stop(self) -> None:
        self._exits.close()


class Connection:
    """Two sockets: from a client to the proxy, and from the proxy to the server."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.ends = [client]
        self.waits: set[Way] = set()  # the ways with data in flight

    def cut(self) -> None:
        for end in self.ends:
            end.transport.abort()
