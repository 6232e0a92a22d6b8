"""A cheap load generator: keep-alive sockets, one thread, epoll, prepared bytes."""

import contextlib
import re
import select
import socket
import time
from collections.abc import Iterator
from itertools import repeat
from uuid import uuid4

WARM_UP = 0.5  # seconds

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_RIDE = (
    "POST /rides HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 16\r\n{header}\r\n"
    "distance=539.837"
)

RIDES = repeat(_RIDE.format(header="").encode())
HEALTH_CHECKS = repeat(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
READY = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Refused(Exception):
    """The API answered with an error."""


def rides_with_keys() -> Iterator[bytes]:
    """Requests for a ride, each with its own Idempotency-Key."""
    while True:
        yield _RIDE.format(header=f"Idempotency-Key: {uuid4()}\r\n").encode()


class KeepAlive:
    """One keep-alive connection with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def receive(self) -> bytes:
        """The next answer, or nothing while it is incomplete. Raises OSError or Refused."""
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server hung up")
        self._received += part
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or length is None or len(body) < int(length[1]):
            return b""
        answer, self._received = self._received, b""
        if answer[:11] != b"HTTP/1.1 20":
            raise Refused(answer.decode())
        return answer

    def close(self) -> None:
        self.socket.close()

    def ask(self, request: bytes) -> bytes:
        """Send one request and wait for its answer."""
        self.send(request)
        while not (answer := self.receive()):
            pass
        return answer


@contextlib.contextmanager
def keep_alive(port: int, number: int) -> Iterator[list[KeepAlive]]:
    """So many connections, while the block lasts."""
    with contextlib.ExitStack() as exits:
        yield [exits.enter_context(contextlib.closing(KeepAlive(port))) for _ in range(number)]


def rate(port: int, requests: Iterator[bytes], clients: int, seconds: float) -> float:
    """Answers per second for `clients` that always have one request under way."""
    with keep_alive(port, clients) as connected, select.epoll() as poll:
        by_descriptor = {}
        for client in connected:
            by_descriptor[client.socket.fileno()] = client
            poll.register(client.socket, select.EPOLLIN)
            client.send(next(requests))
        count(by_descriptor, poll, requests, WARM_UP)
        started = time.perf_counter()
        answers = count(by_descriptor, poll, requests, seconds)
        return answers / (time.perf_counter() - started)


def count(
    by_descriptor: dict[int, KeepAlive],
    poll: select.epoll,
    requests: Iterator[bytes],
    seconds: float,
) -> int:
    """Send the next request after every answer, for `seconds`; returns the number of answers."""
    answers = 0
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        ready = poll.poll(10)
        if not ready:
            raise TimeoutError("no answer for 10 s")
        for descriptor, _ in ready:
            client = by_descriptor[descriptor]
            if client.receive():
                answers += 1
                client.send(next(requests))
    return answers
