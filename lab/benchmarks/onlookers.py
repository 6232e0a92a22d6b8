"""Onlookers at the live page, who follow its events as browsers do."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

FOLLOW = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: keep-alive\r\n"
    "Accept: text/event-stream\r\nCache-Control: no-cache\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n\r\n"
)
EVENTS = "/events"
POLL = 0.1  # seconds


@contextlib.contextmanager
def onlookers(port: int, number: int) -> Iterator[None]:
    """So many during the block, each of whom has been sent something; a thread reads the rest.

    Raises ConnectionError when one of them is not let in, or is hung up on.
    """
    with contextlib.ExitStack() as exits, ThreadPoolExecutor(1) as thread:
        sockets = [exits.enter_context(follow(port)) for _ in range(number)]
        enough = threading.Event()
        looking = thread.submit(_look_on, sockets, enough)
        try:
            yield
        finally:
            enough.set()
        looking.result()


def follow(port: int) -> socket.socket:
    """One onlooker, who has been let in. Raises ConnectionError."""
    onlooker = socket.create_connection(("127.0.0.1", port), timeout=10)
    onlooker.sendall(FOLLOW.format(path=EVENTS, port=port).encode())
    if not onlooker.recv(1 << 20).startswith(b"HTTP/1.1 200 "):
        raise ConnectionError("an onlooker was not let in")
    return onlooker


def _look_on(sockets: Sequence[socket.socket], enough: threading.Event) -> None:
    """Read whatever comes."""
    with select.epoll() as poll:
        by_descriptor = {onlooker.fileno(): onlooker for onlooker in sockets}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.EPOLLIN)
        while not enough.is_set():
            for descriptor, _ in poll.poll(POLL):
                if not by_descriptor[descriptor].recv(1 << 20):
                    raise ConnectionError("an onlooker was hung up on")
