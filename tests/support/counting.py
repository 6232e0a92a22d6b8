"""A proxy in front of a server that counts statements or commands, and round trips.

A round trip begins when the client sends something first, or after the server has answered. A
statement is what Postgres is told to execute; a command is an array that is sent to Redis.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anyio.from_thread import start_blocking_portal
from hiredis import Reader

from tests.support.folders import short_folder

PIECE = 1 << 16  # bytes; the most that is carried at a time
FLUSH = b"H\0\0\0\4"  # of Postgres' protocol: ends a pipeline of psycopg's; nothing answers it
Count = Callable[[bytes], int]  # how many are complete with this piece of a connection's requests


class Counter:
    """Counts for one server; `counts` makes what counts for one connection."""

    def __init__(self, server: Path, counts: Callable[[], Count]) -> None:
        self._server, self._counts = server, counts
        self.asked, self.round_trips = 0, 0  # so far, of all connections

    async def serve(self, requests: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """Serve a connection until either end closes it."""
        answers, server = await asyncio.open_unix_connection(str(self._server))
        server_has_answered = True
        count = self._counts()

        async def answer() -> None:
            nonlocal server_has_answered
            while data := await answers.read(PIECE):
                server_has_answered = True
                client.write(data)
            client.close()

        answering = asyncio.create_task(answer())
        with suppress(ConnectionError):
            while data := await requests.read(PIECE):
                self.asked += count(data)
                if data != FLUSH:  # else nothing would say that the next one is asked anew
                    self.round_trips += server_has_answered
                    server_has_answered = False
                server.write(data)
        server.close()
        await answering


def statements() -> Count:
    """Count Query and Execute messages of Postgres' protocol."""
    rest = b"?"  # in place of a type, which the first message of a connection lacks

    def count(data: bytes) -> int:
        nonlocal rest
        rest, found = rest + data, 0
        while len(rest) >= 5 and len(rest) > (length := int.from_bytes(rest[1:5])):
            found += rest[:1] in (b"Q", b"E")
            rest = rest[length + 1 :]
        return found

    return count


def commands() -> Count:
    """Count arrays of Redis' protocol."""
    reader = Reader()

    def count(data: bytes) -> int:
        reader.feed(data)
        return sum(1 for _ in iter(reader.gets, False))

    return count


@contextmanager
def counting(server: Path, counts: Callable[[], Count]) -> Iterator[tuple[Path, Counter]]:
    """Run a proxy; yields the folder of its socket, named as the server's, and the counter."""
    counter = Counter(server, counts)
    with short_folder() as folder, start_blocking_portal() as loop:
        loop.call(asyncio.start_unix_server, counter.serve, str(folder / server.name))
        yield folder, counter
