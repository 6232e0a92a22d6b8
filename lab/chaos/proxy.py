"""A TCP proxy in front of a server's Unix socket, whose connections can be cut.

It can be turned to another server, as a fail-over does, and its network can be slow or half-dead.

It listens on loopback. If the server does not accept, the connection is closed at once, as with a
server that is down.
"""

import asyncio
import random
import threading
from functools import partial
from pathlib import Path
from typing import ClassVar, cast

from lab.chaos.weather import Pipe, Way, Weather

HOST = "127.0.0.1"


class _End(asyncio.Protocol):
    """One end of a connection: what it receives goes to the other end."""

    way: ClassVar[Way]  # of what it receives

    def __init__(self, proxy: "Proxy", other: "_End | None" = None) -> None:
        self.proxy = proxy
        self.other = other
        self.transport: asyncio.Transport | None = None
        self.pipe = Pipe(proxy.weather, self.way)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.pipe.send(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self.pipe.send(None)
        self.other = None  # each would keep the other: in a long run nobody looks for such pairs

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()


class _ClientEnd(_End):
    way = Way.REQUESTS

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.proxy.clients.add(self)
        self.connecting = asyncio.ensure_future(self._connect())

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            if self.proxy.server is None:
                raise ConnectionRefusedError
            _, server = await loop.create_unix_connection(
                lambda: _ServerEnd(self.proxy, self), str(self.proxy.server)
            )
        except OSError:
            self.pipe.break_off()
            self.abort()
            return
        if self not in self.proxy.clients:  # it was cut in the meantime
            for pipe in (self.pipe, server.pipe):
                pipe.break_off()
            server.abort()
            return
        self.other = server
        self.pipe.target, server.pipe.target = server.transport, self.transport
        for pipe in (self.pipe, server.pipe):
            pipe.deliver()

    def connection_lost(self, error: Exception | None) -> None:
        self.proxy.clients.discard(self)
        super().connection_lost(error)


class _ServerEnd(_End):
    way = Way.ANSWERS

    def data_received(self, data: bytes) -> None:
        if self.proxy.deaf:
            # The server has done what it was asked to, but nobody learns of it.
            self.abort()
            if self.other is not None:
                self.other.abort()
        else:
            super().data_received(data)


class Proxy:
    """Listens on `port` of 127.0.0.1 for the server on the Unix socket `server`, if any."""

    def __init__(self, server: Path | None) -> None:
        self.server = server
        self.deaf = False
        self.port = 0
        self.clients: set[_ClientEnd] = set()
        self.weather = Weather()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        listening = self._loop.create_server(lambda: _ClientEnd(self), HOST, 0)
        server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        self.port = server.sockets[0].getsockname()[1]

    def turn(self, server: Path | None) -> None:
        """Lead new connections to this server, or refuse them; those that there are stay."""
        self.server = server

    def cut_all(self) -> None:
        """Cut every connection, and return when none can ask for anything any more."""

        async def cut() -> None:
            for client in list(self.clients):
                self.clients.discard(client)
                client.abort()
            for pipe in list(self.weather.pipes):
                pipe.break_off()

        asyncio.run_coroutine_threadsafe(cut(), self._loop).result()

    def cut(self, share: float, dice: random.Random) -> None:
        """Cut a share of the connections, each in the middle of whatever it is doing."""

        def cut() -> None:
            for client in list(self.clients):
                if dice.random() < share:
                    self.clients.discard(client)
                    client.abort()

        self._loop.call_soon_threadsafe(cut)

    def lose_answers(self, lose: bool) -> None:
        """While set, cut each connection on which the server answers, losing the answer."""
        self.deaf = lose

    def slow_down(self, longest_delay: float, dice: random.Random) -> None:
        """From now on each piece of data takes up to so many seconds."""
        self.weather.dice, self.weather.longest_delay = dice, longest_delay

    def hold_up(self, way: Way) -> None:
        """From now on nothing goes this way, and nobody is told."""
        self._loop.call_soon_threadsafe(self.weather.held_up.add, way)

    def clear_up(self, way: Way, *, deliver: bool) -> None:
        """End that: deliver what was held up, or break the connections that it was sent on."""
        self._loop.call_soon_threadsafe(partial(self.weather.clear_up, way, deliver=deliver))

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread.ident:
            self._thread.join()
