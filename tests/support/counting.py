"""A proxy in front of a server that counts statements or commands, and round trips.

A round trip begins when the client sends something first, or after the server has answered. A
statement is what Postgres is told to execute; a command is an array that is sent to Redis.
"""

import asyncio
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from anyio.from_thread import start_blocking_portal

from tests.support.folders import short_folder

PIECE = 1 << 16  # bytes; the most that is carried at a time
RunsOf = Callable[[bytes], tuple[int, bytes]]  # how many are in it, and the rest of it


class Counted(NamedTuple):
    """What all clients together have asked."""

    asked: int  # statements, or commands
    round_trips: int

    def since(self, before: "Counted") -> "Counted":
        return Counted(self.asked - before.asked, self.round_trips - before.round_trips)


class Counter:
    """Counts for one server."""

    def __init__(self, server: Path, runs_of: RunsOf, greeting: bool) -> None:
        self._server, self._runs_of, self._greeting = server, runs_of, greeting
        self.now = Counted(0, 0)

    async def serve(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Serve a connection until either end closes it."""
        answers, server = await asyncio.open_unix_connection(str(self._server))
        server_has_answered = True

        async def answer() -> None:
            nonlocal server_has_answered
            while data := await answers.read(PIECE):
                server_has_answered = True
                client.write(data)
            client.close()

        answering = asyncio.create_task(answer())
        rest, greeted = b"", not self._greeting
        with suppress(ConnectionError):
            while data := await requests.read(PIECE):
                rest += data
                if not greeted:  # Postgres' first message has no type
                    (length,) = struct.unpack("!i", rest[:4])
                    rest, greeted = rest[length:], True
                asked, rest = self._runs_of(rest)
                trips = self.now.round_trips + server_has_answered
                self.now = Counted(self.now.asked + asked, trips)
                server_has_answered = False
                server.write(data)
        server.close()
        await answering


def statements(data: bytes) -> tuple[int, bytes]:
    """Count Query and Execute messages of Postgres' protocol; returns the unread rest, too."""
    count = 0
    while len(data) >= 5:
        (length,) = struct.unpack("!i", data[1:5])
        if len(data) < length + 1:
            break
        count += data[:1] in (b"Q", b"E")
        data = data[length + 1 :]
    return count, data


def commands(data: bytes) -> tuple[int, bytes]:
    """Count arrays of strings in Redis' protocol; returns the unread rest, too."""
    count = 0
    while data:
        head, found, rest = data.partition(b"\r\n")
        if not found:
            break
        for _ in range(int(head[1:])):
            size, found, rest = rest.partition(b"\r\n")
            if not found or len(rest) < (length := int(size[1:])) + 2:
                return count, data
            rest = rest[length + 2 :]
        count, data = count + 1, rest
    return count, data


@contextmanager
def counting(
    server: Path, runs_of: RunsOf, greeting: bool = False
) -> Iterator[tuple[Path, Counter]]:
    """Run a proxy; yields the folder of its socket, named as the server's, and the counter."""
    counter = Counter(server, runs_of, greeting)
    with short_folder() as folder, start_blocking_portal() as loop:
        loop.call(asyncio.start_unix_server, counter.serve, str(folder / server.name))
        yield folder, counter
