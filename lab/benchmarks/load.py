"""A cheap load generator: keep-alive sockets, one thread, epoll, prepared bytes."""

import contextlib
import re
import select
import socket
import time
from collections.abc import Iterator
from itertools import repeat
from uuid import uuid4

from lab.benchmarks.stand import HOST

WARM_UP = 0.5  # seconds
LONGEST = 10.0  # seconds to wait for an answer

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_RIDE = (
    "POST /rides HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 16\r\n{header}\r\n"
    "distance=539.837"
)
RIDE = _RIDE.format(header="").encode()
RIDES = repeat(RIDE)


def rides_with_keys() -> Iterator[bytes]:
    while True:
        yield _RIDE.format(header=f"Idempotency-Key: {uuid4()}\r\n").encode()


class KeepAlive:
    """One keep-alive connection with at most one request in flight."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=LONGEST)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""

    def send(self, request: bytes) -> None:
        self.socket.sendall(request)

    def receive(self) -> bytes:
        """The next answer, or nothing while it is incomplete. Raises OSError or RuntimeError."""
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server hung up")
        self._received += part
        if not is_whole(self._received):
            return b""
        answer, self._received = self._received, b""
        if answer[:11] != b"HTTP/1.1 20":
            raise RuntimeError(f"the API refuses: {answer.decode()}")
        return answer

    def post(self) -> int:
        self.send(RIDE)
        while not (answer := self.receive()):
            pass
        return ride_id(answer)

    def close(self) -> None:
        self.socket.close()


def is_whole(message: bytes) -> bool:
    head, blank, body = message.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(blank) and length is not None and len(body) >= int(length[1])


def ride_id(answer: bytes) -> int:
    _, _, rest = answer.partition(b"/rides/")
    return int(rest.partition(b"\r")[0])


def rate(port: int, requests: Iterator[bytes], clients: int, seconds: float) -> float:
    """Answers per second for so many clients, each of which has one request in flight."""
    with contextlib.ExitStack() as exits:
        poll = exits.enter_context(select.epoll())
        asking: dict[int, KeepAlive] = {}
        for _ in range(clients):
            client = exits.enter_context(contextlib.closing(KeepAlive(port)))
            asking[client.socket.fileno()] = client
            poll.register(client.socket, select.EPOLLIN)
            client.send(next(requests))

        def answers(until: float) -> int:
            number = 0
            while time.perf_counter() < until:
                ready = poll.poll(LONGEST)
                if not ready:
                    raise TimeoutError(f"no answer for {LONGEST:.0f} s")
                for descriptor, _ in ready:
                    client = asking[descriptor]
                    if client.receive():
                        number += 1
                        client.send(next(requests))
            return number

        answers(time.perf_counter() + WARM_UP)
        started = time.perf_counter()
        return answers(started + seconds) / (time.perf_counter() - started)
