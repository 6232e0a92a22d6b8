"""The receiver of the receipts: a real HTTP server that notes what it is sent, and fails on demand.

It refuses one ride in a hundred for good, by the distance, so that every run has rides whose
receipt must end as a dead letter, and no others may.
"""

import base64
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

from standardwebhooks import Webhook, WebhookVerificationError

HOST = "127.0.0.1"
POLL = 0.05  # seconds
UNWELCOME_EVERY = Decimal("100.900")  # metres: each hundredth of the distances that are asked for

NO_RECEIPT = (WebhookVerificationError, ValueError, LookupError, TypeError, InvalidOperation)


class Mood(Enum):
    """What the receiver does with a request."""

    WELL = "takes receipts"
    BUSY = "answers 503"
    HANGING = "never answers"
    CUTTING = "hangs up in the middle of its answer"
    AWAY = "does not listen"


FAILURES = (Mood.BUSY, Mood.HANGING, Mood.CUTTING, Mood.AWAY)


class Delivery(NamedTuple):
    """One request. What the body says is None where there is a `flaw`: then it is no receipt.

    `taken` is the ride's time, `distance` is in metres, `at` is on the monotonic clock. `status` is
    the whole answer, None if there was none.
    """

    webhook_id: str
    ride: int | None
    distance: Decimal | None
    taken: datetime | None
    at: float
    status: int | None
    flaw: str = ""

    @property
    def accepted(self) -> bool:
        return self.status == 204


def is_unwelcome(distance: Decimal) -> bool:
    """Whether the receiver never takes the receipt of a ride of this distance (metres)."""
    return not distance % UNWELCOME_EVERY


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
        return f"http://{HOST}:{self.port}/receipts"

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

    def judge(self, path: str, headers: dict[str, str], body: bytes) -> Delivery:
        """What this request is, and how it is to be answered now."""
        webhook_id, at, mood = headers.get("webhook-id", ""), time.monotonic(), self.mood
        try:
            Webhook(self.secret).verify(body, headers, json_parse=False)
            said = json.loads(body, parse_float=Decimal)
            ride, distance = int(said["data"]["ride_id"]), Decimal(said["data"]["distance"])
            taken = datetime.fromisoformat(said["timestamp"])
            if path != "/receipts" or said["type"] != "ride.receipt":
                raise ValueError(f"{said['type']!r} to {path}")
        except NO_RECEIPT as error:
            flaw = f"{type(error).__name__}: {error}"
            return Delivery(webhook_id, None, None, None, at, 400, flaw)
        if mood is Mood.WELL:
            status: int | None = 410 if is_unwelcome(distance) else 204
        else:
            status = 503 if mood is Mood.BUSY else None
        return Delivery(webhook_id, ride, distance, taken, at, status)


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
        delivery = receiver.judge(self.path, headers, body)
        receiver.deliveries.append(delivery)
        if delivery.status is None:
            if receiver.mood is Mood.HANGING:
                receiver.is_well.wait()
            else:
                self.wfile.write(b"HTTP/1.1 204 No Con")
            self.close_connection = True
            return
        self.send_response(delivery.status)
        if delivery.status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Nothing: the deliveries are noted."""
