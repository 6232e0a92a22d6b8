"""The receiver of the receipts: a real HTTP server, which notes what it is sent.

It fails on demand, in one of the ways that `Mood` lists.
"""

import base64
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from chaos.deliveries import PATH, TAKEN, Delivery, Mood, judge

HOST = "127.0.0.1"
POLL = 0.05  # seconds


class Receiver:
    """Listens on `port` of 127.0.0.1; whoever signs with `secret` is heard."""

    def __init__(self) -> None:
        self.secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
        self.deliveries: list[Delivery] = []
        self.busy = threading.Lock()  # held by the one fault that acts on it
        self.mood = Mood.WELL
        self.is_well = threading.Event()
        self.is_well.set()
        self.open: set[socket.socket] = set()
        # It is bound and never listens: it keeps the port ours while the server is away.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind((HOST, 0))
        self.port: int = self._place.getsockname()[1]
        self._server: _Server | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    def start(self) -> None:
        self._server = _Server(self)
        serve = threading.Thread(target=self._server.serve_forever, args=[POLL], daemon=True)
        serve.start()

    @contextmanager
    def failing(self, mood: Mood) -> Iterator[None]:
        """Fail in this way for as long as the block takes."""
        self.mood = mood
        self.is_well.clear()
        if mood is Mood.AWAY:
            self._close()
        try:
            yield
        finally:
            self.mood = Mood.WELL
            self.is_well.set()
            if mood is Mood.AWAY:
                self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.is_well.set()
        self._close()
        self._place.close()

    def _close(self) -> None:
        """Stop listening, and cut all connections."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__((HOST, receiver.port), _Handler)

    def handle_error(self, *_: object) -> None:
        """A lost connection is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.receiver.open.add(self.connection)

    def finish(self) -> None:
        self.server.receiver.open.discard(self.connection)
        super().finish()

    def do_POST(self) -> None:
        receiver = self.server.receiver
        body = self.rfile.read(length := int(self.headers["content-length"]))
        if len(body) < length:  # it was cut
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        delivery = judge(receiver.secret, receiver.mood, self.path, headers, body)
        receiver.deliveries.append(delivery)
        if delivery.status is None:
            if receiver.mood is Mood.HANGING:
                receiver.is_well.wait()
            else:
                self.wfile.write(b"HTTP/1.1 204 No Con")
            self.close_connection = True
            return
        self.send_response(delivery.status)
        if delivery.status != TAKEN:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: the deliveries are noted."""
