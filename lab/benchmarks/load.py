"""A cheap load generator: keep-alive sockets, one thread, epoll, prepared bytes."""

import contextlib
import re
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from uuid import uuid4

LOOPBACK = "127.0.0.1"
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
        self.socket = socket.create_connection((LOOPBACK, port), timeout=10)
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


def is_ready(port: int) -> bool:
    """Whether the API takes rides."""
    try:
        with contextlib.closing(KeepAlive(port)) as client:
            client.ask(READY)
    except (OSError, Refused):
        return False
    return True


class Clients:
    """Clients that always have one request under way, while they are counted."""

    def __init__(self, port: int, requests: Iterator[bytes], number: int) -> None:
        self._requests = requests
        with contextlib.ExitStack() as exits:
            self._poll = exits.enter_context(select.epoll())
            self._clients: dict[int, KeepAlive] = {}
            for _ in range(number):
                client = KeepAlive(port)
                exits.callback(client.close)
                self._clients[client.socket.fileno()] = client
                self._poll.register(client.socket, select.EPOLLIN)
                client.send(next(requests))
            self._exits = exits.pop_all()

    def __enter__(self) -> "Clients":
        return self

    def __exit__(self, *_: object) -> None:
        self._exits.close()

    def rate(self, seconds: float) -> float:
        """Answers per second, from now on for so many seconds."""
        started = time.perf_counter()
        answers = self._count(started + seconds)
        return answers / (time.perf_counter() - started)

    def _count(self, deadline: float) -> int:
        """Send the next request after every answer; returns the number of answers."""
        answers = 0
        while time.perf_counter() < deadline:
            ready = self._poll.poll(10)
            if not ready:
                raise TimeoutError("no answer for 10 s")
            for descriptor, _ in ready:
                client = self._clients[descriptor]
                if client.receive():
                    answers += 1
                    client.send(next(self._requests))
        return answers


def rate(port: int, requests: Iterator[bytes], clients: int, seconds: float) -> float:
    """Answers per second for so many clients, once they have warmed up."""
    with Clients(port, requests, clients) as posting:
        posting.rate(WARM_UP)
        return posting.rate(seconds)


@contextlib.contextmanager
def steadily(port: int, per_second: float) -> Iterator[None]:
    """Post so many rides a second during the block, each when it is due or as soon as possible."""
    enough = threading.Event()

    def post() -> None:
        with contextlib.closing(KeepAlive(port)) as client:
            due = time.monotonic()
            while not enough.wait(max(0.0, due - time.monotonic())):
                client.ask(next(RIDES))
                due += 1 / per_second

    with ThreadPoolExecutor(1) as thread:
        posting = thread.submit(post)
        try:
            yield
        finally:
            enough.set()
        posting.result()
