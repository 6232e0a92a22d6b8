"""A receiver of receipts that answers each at once, in a process of its own, and notes each.

A bare asyncio protocol: it reads a request, finds the ride's number in it, answers 204. Signatures
are not verified: that is the customer's cost, and not the workers'.
"""

import asyncio
import contextlib
import multiprocessing
import re
import signal
import time
from array import array
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

HOST = "127.0.0.1"
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_RIDE = re.compile(rb'"ride_id":(\d+)')


class Notes(NamedTuple):
    """Whose receipts came, in order, and when, in seconds on the machine's monotonic clock."""

    rides: list[int]
    times: list[float]

    @property
    def repetitions(self) -> int:
        return len(self.rides) - len(set(self.rides))

    @property
    def rate(self) -> float:
        """Receipts per second, from the first to the last; a repetition counts as none."""
        return len(set(self.rides)) / (self.times[-1] - self.times[0])


class Receiver:
    """The process, as seen from the one that started it."""

    def __init__(self, pipe: "Connection[str, Any]") -> None:
        self._pipe = pipe
        port: int = pipe.recv()
        self.url = f"http://{HOST}:{port}/receipts"

    def count(self) -> int:
        """How many receipts have come since the notes were last taken."""
        self._pipe.send("count")
        count: int = self._pipe.recv()
        return count

    def take(self) -> Notes:
        """The notes so far; the receiver begins new ones."""
        self._pipe.send("take")
        rides, times = self._pipe.recv()
        return Notes(rides.tolist(), times.tolist())


@contextlib.contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a receiver while the block lasts; if this process dies, it ends too."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe()
    process = context.Process(target=_run, args=(its,), daemon=True)
    process.start()
    its.close()
    with ours:
        yield Receiver(ours)
    process.join()


def _run(pipe: "Connection[Any, str]") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the pipe
    asyncio.run(_serve(pipe))


async def _serve(pipe: "Connection[Any, str]") -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    rides, times = array("q"), array("d")

    def answer() -> None:
        try:
            question = pipe.recv()
        except EOFError:
            loop.remove_reader(pipe.fileno())
            ended.set()
            return
        pipe.send(len(rides) if question == "count" else (rides, times))
        if question == "take":
            del rides[:], times[:]

    server = await loop.create_server(lambda: _Client(rides, times), HOST, 0, backlog=1024)
    loop.add_reader(pipe.fileno(), answer)
    pipe.send(server.sockets[0].getsockname()[1])
    await ended.wait()
    server.close()


class _Client(asyncio.Protocol):
    """One keep-alive connection, with at most one request under way."""

    def __init__(self, rides: "array[int]", times: "array[float]") -> None:
        self._rides = rides
        self._times = times
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or length is None or len(body) < int(length[1]):
            return
        ride = _RIDE.search(body)
        if ride is None:
            raise ValueError(f"not a receipt: {body!r}")
        self._times.append(time.monotonic())
        self._rides.append(int(ride[1]))
        self._received = b""
        self._transport.write(ANSWER)
