"""A connection on which nothing is sent to the client for too long is cut.

granian gives a request to a thread once its head is in. The thread then waits for the body, for as
long as the client likes: granian has no time-out for it, nothing interrupts the wait, and WSGI does
not say on which connection it is. So a thread of its own looks at all the connections from outside.
By the time it acts, each silent one has a client that is slow, or gone: idle connections and slow
heads were closed by granian before, and an answer takes ANSWER_TIME at most.

To shut the reading end is enough: the body ends there, the application says 408, granian hangs up.
Only Linux tells when something was last sent; elsewhere bodies have no limit.
"""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from flask import Flask, Request
from werkzeug.exceptions import RequestTimeout

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

IN_ENVIRON = "rocket_rides.slow_clients"
ANSWER_TIME = 2.0  # seconds, with all the waiting that `api.pool` allows for
ROUND = 0.5

# In Linux' struct tcp_info.
_STATE = 0
_ESTABLISHED = 1
_LAST_DATA_SENT = slice(44, 48)  # in milliseconds, counted from the handshake at first


class SlowClients:
    """Cuts the connections to `port` that have been silent for `client_timeout` and ANSWER_TIME."""

    def __init__(self, port: int, client_timeout: float) -> None:
        self._port = port
        self._limit = client_timeout + ANSWER_TIME
        self._last_cut = -1.0

    def watch(self, app: Flask) -> None:
        """Begin, in a thread that ends with the process; each request of `app` then knows this."""
        if sys.platform == "linux":
            threading.Thread(target=self._run, name="slow clients", daemon=True).start()
        application = app.wsgi_app

        def known(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
            environ[IN_ENVIRON] = self
            return application(environ, start_response)

        app.wsgi_app = known  # type: ignore[method-assign]

    def read(self, request: Request) -> bytes:
        """The body, all of it or what came of it. Raises RequestTimeout when it was cut."""
        started = time.monotonic()
        body = request.get_data()
        # Which connection was cut is not known, but if this was not the one, its client has left.
        if self._last_cut > started and len(body) < (request.content_length or 0):
            raise RequestTimeout("the body did not come in time")
        return body

    def _run(self) -> None:
        while True:
            time.sleep(ROUND)
            with suppress(OSError):  # no descriptor is free for a look: the next round has one
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
            return  # the listening socket, one that closes, or in time
        self._last_cut = time.monotonic()
        # Cut before, and still nothing was sent: it reads no answers, or the database hangs.
        gone = late > ANSWER_TIME
        client.shutdown(socket.SHUT_RDWR if gone else socket.SHUT_RD)


def read_body(request: Request) -> bytes:
    """The body, all of it or what came of it. Raises RequestTimeout when it was cut."""
    slow_clients: SlowClients = request.environ[IN_ENVIRON]
    return slow_clients.read(request)


def _sockets() -> Iterator[socket.socket]:
    """A duplicate of each socket of this process: it stays the same one if granian closes it."""
    for name in os.listdir("/proc/self/fd"):
        try:
            descriptor = os.dup(int(name))
        except OSError:  # closed by now
            continue
        try:
            duplicate = socket.socket(fileno=descriptor)
        except OSError:  # not a socket
            os.close(descriptor)
        else:
            yield duplicate
