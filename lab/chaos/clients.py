"""Clients of the API: each posts rides until they are answered, and some behave badly.

Every ride has an Idempotency-Key. Most are posted again and again with the same key until an answer
comes; `Manner` lists the other ways. All clients share one event loop: see lab/chaos/crowd.py.
"""

import asyncio
import json
import random
import re
import socket
import time
from collections import deque
from contextlib import suppress
from decimal import Decimal
from enum import Enum

from lab.chaos.journal import Answer, Ask, Journal
from rocket_rides.waiting import delays

HOST = "127.0.0.1"
TIMEOUT = 4.0  # seconds; the API answers within two unless it is stopped
CATCH_UP = 1.0  # seconds a client may fall behind its schedule before it skips rides
AGAIN_AFTER = 5.0  # seconds; a restore may happen in between
FORM = "application/x-www-form-urlencoded"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Manner(Enum):
    """How a client posts one ride."""

    PATIENT = "until it is answered"
    AGAIN = "until it is answered, and once more seconds later, as if it had not been"
    TWICE = "hangs up before the answer, and posts again at once"
    GONE = "hangs up before the answer, for good: one ride at most"
    HALF_BODY = "announces a length and sends less: no ride"
    HALF_HEAD = "stops in the middle of the headers: no ride"
    HALF_THEN_WHOLE = "stops half-way, then posts until it is answered"


SHARES = {
    Manner.PATIENT: 0.79,
    Manner.AGAIN: 0.05,
    Manner.TWICE: 0.04,
    Manner.GONE: 0.04,
    Manner.HALF_BODY: 0.03,
    Manner.HALF_HEAD: 0.02,
    Manner.HALF_THEN_WHOLE: 0.03,
}


class Client:
    """Posts `rate` rides a second to the API at `port`, until `end`."""

    def __init__(self, name: str, port: int, rate: float, journal: Journal) -> None:
        self.name = name
        self._port = port
        self._rate = rate
        self._journal = journal
        self._dice = random.Random(name)
        self._ending = asyncio.Event()
        self._give_up_at = float("inf")
        self._again: deque[tuple[float, Ask]] = deque()  # rides to post once more, and when
        self._api = KeepAlive(port)

    async def run(self) -> None:
        due = time.monotonic()
        while True:
            due = max(due, time.monotonic() - CATCH_UP) + self._dice.expovariate(self._rate)
            if await self._ends_before(due):
                break
            await self._ride()
            while self._again and self._again[0][0] < time.monotonic():
                await self._post(self._again.popleft()[1])
        for _, ask in self._again:
            await self._post(ask)
        self._api.close()

    def end(self, patience: float) -> None:
        """Request no more rides; `run` returns when those requested are answered.

        After `patience` seconds the client gives up and leaves a ride unanswered.
        """
        self._give_up_at = time.monotonic() + patience
        self._ending.set()

    async def _ends_before(self, due: float) -> bool:
        if (left := due - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._ending.wait()
        return self._ending.is_set()

    async def _ride(self) -> None:
        ask = self._journal.ask(self.name)
        manner = self._dice.choices(list(SHARES), list(SHARES.values()))[0]
        head, body = request(ask)
        if manner is Manner.HALF_BODY or manner is Manner.HALF_THEN_WHOLE:
            await self._send(head + body[: -self._dice.randint(1, len(body) - 1)])
        elif manner is Manner.HALF_HEAD:
            await self._send(head[: self._dice.randint(10, len(head) - 3)])
        elif manner is Manner.TWICE or manner is Manner.GONE:
            ask.whole = True
            ask.given_up = manner is Manner.GONE
            await self._send(head + body)
        if manner in (Manner.PATIENT, Manner.AGAIN, Manner.TWICE, Manner.HALF_THEN_WHOLE):
            await self._post(ask)
        if manner is Manner.AGAIN:
            self._again.append((time.monotonic() + AGAIN_AFTER, ask))

    async def _send(self, data: bytes) -> None:
        """Send `data` and hang up, at once or a moment later."""
        half = KeepAlive(self._port)
        with suppress(OSError):
            async with asyncio.timeout(TIMEOUT):
                await half.send(data)
            await asyncio.sleep(self._dice.choice([0, 0.002, 0.02]))
        half.close()

    async def _post(self, ask: Ask) -> None:
        """Post the ride until it is answered. A 503 or a lost connection is not an answer."""
        ask.whole = True
        whole = b"".join(request(ask))
        for delay in delays(0.02, 0.5):
            sent = time.monotonic()
            try:
                async with asyncio.timeout(TIMEOUT):
                    status, content = await self._api.ask(whole)
            except (OSError, ValueError):
                self._api.close()  # it reconnects by itself
            else:
                if status == 201:
                    self._journal.answered += not ask.answers
                    ask.answers.append(read(content, sent))
                    return
                if status != 503:
                    self._journal.troubles.append(
                        f"the ride of {ask.distance} m was answered with {status}: "
                        f"{content[:200].decode(errors='replace')}"
                    )
                    if status < 500:
                        return
            if time.monotonic() > self._give_up_at:
                return
            await asyncio.sleep(delay)


NONSENSE = 0  # the status of what is not one answer


class KeepAlive:
    """A connection to the API at `port`, made when it is needed, with one request under way."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    async def send(self, data: bytes) -> socket.socket:
        """Raises OSError."""
        loop = asyncio.get_running_loop()
        if self._socket is None:
            self._socket = socket.socket()
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(self._socket, (HOST, self._port))
        await loop.sock_sendall(self._socket, data)
        return self._socket

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """The status and the body of the answer. Raises OSError or, if it is none, ValueError."""
        api, loop = await self.send(request), asyncio.get_running_loop()
        received = b""
        while True:
            if not (part := await loop.sock_recv(api, 65536)):
                raise ConnectionResetError("the API hung up")
            received += part
            head, blank, content = received.partition(b"\r\n\r\n")
            if not blank:
                continue
            if (length := LENGTH.search(head)) is None:
                raise ValueError(f"an answer without a length: {head!r}")
            if len(content) >= int(length[1]):
                is_one_answer = len(content) == int(length[1])
                return int(head[9:12]) if is_one_answer else NONSENSE, content

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def request(ask: Ask) -> tuple[bytes, bytes]:
    """The head and the body of a POST for this ride."""
    body = f"distance={ask.distance}".encode()
    head = (
        f"POST /rides HTTP/1.1\r\nHost: {HOST}\r\nIdempotency-Key: {ask.key}\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode(), body


def read(content: bytes, sent: float) -> Answer:
    """The ride in a 201 that has just come, for a request sent at `sent`."""
    ride = json.loads(content, parse_float=Decimal)["ride"]
    return Answer(ride["id"], Decimal(ride["distance"]), sent, time.monotonic())
