"""Cuts connections on which nothing has been sent to the client for too long.

granian hands a request to a thread once its head has arrived. The thread then waits for the body,
for as long as the client likes: granian has no time-out for it, nothing interrupts the wait, and
WSGI does not say which connection it is. So a separate thread watches all connections from outside.
By the time it acts, the client of a silent connection is slow or gone: granian closes idle
connections and slow heads earlier, and an answer takes at most ANSWER_TIME, unless the database
hangs, or a connection to it must be opened.

Shutting the reading end is enough: the body ends there, the application answers 408, and granian
hangs up. Only Linux tells when something was last sent; elsewhere bodies have no time limit.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

from flask import Flask

ANSWER_TIME = 3.0  # seconds, as `api.writing` says
ROUND = 0.5  # seconds

# In Linux' struct tcp_info.
_STATE = 0
_ESTABLISHED = 1
_LAST_DATA_SENT = slice(44, 48)  # milliseconds ago; at first, since the handshake


class SlowClients:
    """Cuts the connections to `port` silent for `client_timeout` seconds and ANSWER_TIME."""

    def __init__(self, port: int, client_timeout: float) -> None:
        self._port = port
        self._limit = client_timeout + ANSWER_TIME
        self._last_cut = -1.0

    def watch(self, app: Flask) -> None:
        """Start a thread that ends with the process, for the requests of `app`."""
        app.extensions["slow_clients"] = self
        if sys.platform == "linux":
            threading.Thread(target=self._run, name="slow clients", daemon=True).start()

    def has_cut_since(self, moment: float) -> bool:
        """Whether a connection was cut after that moment of the monotonic clock."""
        return self._last_cut > moment

    def _run(self) -> None:
        while True:
            time.sleep(ROUND)
            with suppress(OSError):  # out of file descriptors: the next round tries again
                for duplicate in _sockets():
                    with duplicate, suppress(OSError):  # the other side may have closed it
                        self._cut_if_silent(duplicate)

    def _cut_if_silent(self, client: socket.socket) -> None:
        if client.family not in (socket.AF_INET, socket.AF_INET6):
            return
        if client.type != socket.SOCK_STREAM or client.getsockname()[1] != self._port:
            return
        info = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LAST_DATA_SENT.stop)
        late = int.from_bytes(info[_LAST_DATA_SENT], sys.byteorder) / 1000 - self._limit
        if info[_STATE] != _ESTABLISHED or late < 0:
            return  # the listening socket, a closing one, or in time
        self._last_cut = time.monotonic()
        # It was cut before, and still nothing was sent: the client reads no answers, or the
        # database hangs.
        gone = late > ANSWER_TIME
        client.shutdown(socket.SHUT_RDWR if gone else socket.SHUT_RD)


def _sockets() -> Iterator[socket.socket]:
    """A duplicate of each of this process's sockets: it stays valid when granian closes its own."""
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptor = os.dup(int(name))
        except OSError:  # already closed
            continue
        try:
            duplicate = socket.socket(fileno=descriptor)
        except OSError:  # not a socket
            os.close(descriptor)
        else:
            yield duplicate
