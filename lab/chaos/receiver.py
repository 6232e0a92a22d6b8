"""The receiver of receipts: a real HTTP server, which notes each request.

It accepts only what is signed with its secret. By the distance, it refuses one ride in a hundred
for good: exactly the receipts of these must become dead letters. On demand it fails, by its `Mood`.
"""

import asyncio
import base64
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import NamedTuple

from aiohttp import web
from anyio.from_thread import start_blocking_portal
from standardwebhooks import Webhook, WebhookVerificationError

from lab.ports import free_ports

HOST = "127.0.0.1"
BACKLOG = 128
LATE = 1.5  # seconds; longer than the fleet's RECEIPT_TIMEOUT

PATH, TYPE = "/receipts", "ride.receipt"
UNWELCOME_EVERY = Decimal("100.900")  # metres: each hundredth of the distances that are asked for

TAKEN, REFUSED, FORGED, BUSY = 204, 410, 400, 503
NO_RECEIPT = (WebhookVerificationError, ValueError, LookupError, TypeError, InvalidOperation)


class Mood(Enum):
    WELL = "takes receipts"
    BUSY = "answers 503"
    HANGING = "never answers"
    CUTTING = "hangs up in the middle of its answer"
    LATE = "takes receipts, and answers after the time-out"
    AWAY = "does not listen"


FAILURES = (Mood.BUSY, Mood.HANGING, Mood.CUTTING, Mood.LATE, Mood.AWAY)


class Delivery(NamedTuple):
    """One request. Fields of its body are None where it has a `flaw`, and so is no receipt.

    `taken` is the ride's time, `distance` is in metres, `at` is on the monotonic clock. `status` is
    the answer's, or None where the answer is never complete.
    """

    webhook_id: str
    ride: int | None
    distance: Decimal | None
    taken: datetime | None
    at: float
    status: int | None
    flaw: str = ""


def judge(secret: str, mood: Mood, path: str, headers: dict[str, str], body: bytes) -> Delivery:
    """Read a request that has just come, and decide its answer; header names are in lower case."""
    webhook_id, at = headers.get("webhook-id", ""), time.monotonic()
    try:
        Webhook(secret).verify(body, headers, json_parse=False)
        said = json.loads(body, parse_float=Decimal)
        ride, distance = int(said["data"]["ride_id"]), Decimal(said["data"]["distance"])
        taken = datetime.fromisoformat(said["timestamp"])
        if (path, said["type"]) != (PATH, TYPE):
            raise ValueError(f"{said['type']!r} to {path}")
    except NO_RECEIPT as error:
        flaw = f"{type(error).__name__}: {error}"
        return Delivery(webhook_id, None, None, None, at, FORGED, flaw)
    status = BUSY if mood is Mood.BUSY else None
    if mood in (Mood.WELL, Mood.LATE):
        status = REFUSED if distance % UNWELCOME_EVERY == 0 else TAKEN
    return Delivery(webhook_id, ride, distance, taken, at, status)


class Receiver:
    """Listens on `port` of 127.0.0.1, and accepts what is signed with `secret`."""

    def __init__(self) -> None:
        self.secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
        self.busy = threading.Lock()  # held by the one fault that acts on it
        self.deliveries: list[Delivery] = []
        self.port = free_ports()
        self._mood = Mood.WELL
        self._recovered = asyncio.Event()
        self._application = web.Application()
        self._application.router.add_route("*", "/{any:.*}", self._answer)
        self._runner: web.AppRunner | None = None
        self._exits = ExitStack()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}{PATH}"

    def start(self) -> None:
        self._portal = self._exits.enter_context(start_blocking_portal())
        self._portal.call(self._listen)

    async def _listen(self) -> None:
        runner = web.AppRunner(self._application, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, HOST, self.port, backlog=BACKLOG, reuse_address=True)
        await site.start()
        self._runner = runner

    @contextmanager
    def failing(self, mood: Mood) -> Iterator[None]:
        self._portal.call(self._become, mood)
        try:
            yield
        finally:
            self._portal.call(self._become, Mood.WELL)

    async def _become(self, mood: Mood) -> None:
        was, self._mood = self._mood, mood
        if mood is Mood.WELL:
            self._recovered.set()
        else:
            self._recovered.clear()
        if mood is Mood.AWAY:
            await self._leave()
        elif was is Mood.AWAY:
            await self._listen()

    async def _leave(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        path = request.path if request.method == "POST" else request.method
        delivery = judge(self.secret, self._mood, path, headers, await request.read())
        self.deliveries.append(delivery)
        if delivery.status is None:
            if self._mood is Mood.HANGING:
                await self._recovered.wait()
            elif request.transport:
                request.transport.write(b"HTTP/1.1 204 No Con")
            if request.transport:  # the client may have hung up meanwhile
                request.transport.close()
        elif self._mood is Mood.LATE:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._recovered.wait(), LATE)
        return web.Response(status=delivery.status or TAKEN)

    def stop(self) -> None:
        """Stop listening, and end all connections; what came is kept."""
        if self._runner:
            self._portal.call(self._leave)
        self._exits.close()
