"""A TCP proxy in front of a server's Unix socket, which stands for the network between them.

Its connections can be cut; it can be turned to another server, as a fail-over does; it can be slow,
or carry only one direction for a while. It listens on loopback. If the server does not accept, the
connection is closed at once, as with a server that is down.

Nothing overtakes anything: one piece is carried after another, each with its own delay. The end of
a connection is held up, too: whoever has hung up meanwhile is still connected as far as the other
side knows, and what it had asked for may arrive later.

The kernel's own traffic control (tc, netem) is no substitute. It takes root, and a kernel that has
it; it does not know where one connection ends, nor an answer from a request.
"""

import asyncio
import random
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from lab.chaos.loop import Loop

HOST = "127.0.0.1"
PIECE = 1 << 16  # bytes; the most that is carried at a time


class Way(Enum):
    """A direction of the traffic."""

    REQUESTS = "requests"
    ANSWERS = "answers"


class Proxy:
    """Listens on `port` of 127.0.0.1 for the server on the Unix socket `server`, if any."""

    def __init__(self, server: Path | None) -> None:
        self.port = 0
        self.connections: set[Connection] = set()
        self._server = server
        self.deaf = False
        self._longest_delay = 0.0  # seconds
        self._dice = random.Random()
        self._is_free = {way: asyncio.Event() for way in Way}
        self._loop = Loop()

    def start(self) -> None:
        for event in self._is_free.values():
            event.set()
        self._loop.start()
        self._loop.do(self._listen())

    async def _listen(self) -> None:
        self._listener = await asyncio.start_server(self._connect, HOST, 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _connect(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        self.connections.add(connection := Connection(client))
        try:
            if self._server is None:
                raise ConnectionRefusedError
            answers, server = await asyncio.open_unix_connection(str(self._server))
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
        """Until one side hangs up."""
        while not target.is_closing():
            try:
                data = await source.read(PIECE)
            except OSError:  # it was reset, which is an end as well
                data = b""
            if data and way is Way.ANSWERS and self.deaf:
                connection.cut()
            connection.waits.add(way)
            if self._longest_delay:
                await asyncio.sleep(self._dice.uniform(0, self._longest_delay))
            await self._is_free[way].wait()
            connection.waits.discard(way)
            target.write(data)
            if not data:
                target.close()

    def turn(self, server: Path | None) -> None:
        """Lead new connections to this server, or refuse them; those that there are stay."""
        self._server = server

    def cut(self, share: float = 1, dice: random.Random | None = None) -> None:
        """Cut a share of the connections, each in the middle of whatever it is doing.

        They can ask for nothing any more when this returns.
        """
        dice = dice or random.Random()
        self._cut_each(lambda _: dice.random() < share)

    def _cut_each(self, is_meant: "Callable[[Connection], bool]") -> None:
        def cut() -> None:
            for connection in self.connections:
                if is_meant(connection):
                    connection.cut()

        self._loop.call(cut)

    def lose_answers(self, lose: bool) -> None:
        """While set, cut each connection on which the server answers: nobody learns what it did."""
        self.deaf = lose

    def slow_down(self, longest_delay: float, dice: random.Random) -> None:
        """From now on each piece of data takes up to so many seconds."""
        self._dice, self._longest_delay = dice, longest_delay

    def hold_up(self, way: Way) -> None:
        """From now on nothing goes this way, and nobody is told."""
        self._loop.call(self._is_free[way].clear)

    def clear_up(self, way: Way, *, deliver: bool) -> None:
        """End that: deliver what was held up, or cut the connections that have any.

        Those are the ones whose client or server sent something in vain, or hung up.
        """
        if not deliver:
            self._cut_each(lambda connection: way in connection.waits)
        self._loop.call(self._is_free[way].set)

    def stop(self) -> None:
        self._loop.stop()


class Connection:
    """Of a client with the proxy, and of the proxy with the server."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.ends = [client]
        self.waits: set[Way] = set()  # the ways on which something is under way

    def cut(self) -> None:
        for end in self.ends:
            end.transport.abort()
