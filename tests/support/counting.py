"""A proxy in front of a server that counts statements or commands, and round trips.

A round trip begins when the client sends something first, or after the server has answered. A
statement is what Postgres is told to execute; a command is an array that is sent to Redis.
"""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tests.support.folders import short_folder

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
        self._guard = threading.Lock()
        self._asked = self._round_trips = 0

    @property
    def now(self) -> Counted:
        with self._guard:
            return Counted(self._asked, self._round_trips)

    def serve(self, client: socket.socket) -> None:
        """Serve a connection until either end closes it."""
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(str(self._server))
            turn = ["server"]
            back = threading.Thread(target=self._answer, args=[server, client, turn], daemon=True)
            back.start()
            rest, greeted = b"", not self._greeting
            while data := _receive(client):
                rest += data
                if not greeted:  # Postgres' first message has no type
                    (length,) = struct.unpack("!i", rest[:4])
                    rest, greeted = rest[length:], True
                asked, rest = self._runs_of(rest)
                with self._guard:
                    self._asked += asked
                    self._round_trips += turn[0] == "server"
                    turn[0] = "client"
                server.sendall(data)
            _shut(server)

    def _answer(self, server: socket.socket, client: socket.socket, turn: list[str]) -> None:
        while data := _receive(server):
            with self._guard:
                turn[0] = "server"
            with suppress(OSError):  # it has gone, and wants no answer
                client.sendall(data)
        _shut(client)


def _receive(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 16)
    except OSError:
        return b""


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


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
    with short_folder() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / server.name))
        listening.listen()

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=counter.serve, args=[client], daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield folder, counter
        finally:
            _shut(listening)
