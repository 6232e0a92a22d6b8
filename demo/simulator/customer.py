"""The customer: receives the rides' receipts, and is not always easy to deliver to.

It refuses one receipt in ten for a moment, is slow now and then, and never accepts one ride in two
hundred, so that the demo has dead letters. By its webhook-id it recognizes a receipt that comes
again, as any receiver should. It remembers the newest of these only, so a long run stays small.

Whoever wants to see receipts wait puts it in a bad mood (`make break ARGS=fail-receiver`): for some
seconds it refuses whatever comes, and says when to come again.
"""

import asyncio
import logging
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping
from time import monotonic
from urllib.parse import urlsplit

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from demo.simulator.mood import BAD_MOOD

logger = logging.getLogger(__name__)

PUT_OFF = 0.1  # share of receipts that are refused, each time for a second
SLOW = 0.02  # share of receipts that are answered slowly
SLOWNESS = 2.0  # seconds
NEVER = 200  # a ride whose id is a multiple of this one is never accepted
MOST = 20_000  # receipts remembered
LARGEST = 64 * 1024  # bytes of a request's body


class Customer:
    """Answers each receipt; in one event loop. `clock` counts seconds and never goes back."""

    def __init__(
        self, secret: str, dice: random.Random, clock: Callable[[], float] = monotonic
    ) -> None:
        self._webhook = Webhook(secret)
        self._dice = dice
        self._clock = clock
        self.counts: Counter[str] = Counter()
        self._accepted: dict[str, None] = {}  # by webhook-id, the oldest first
        self._well_at = -math.inf  # when the last bad mood is over

    async def open_at(self, url: str) -> web.AppRunner:
        """Listen at the host, port and path of `url`.

        Raises OSError where that is impossible: the port is taken, or the host is another machine;
        UnicodeError if it is no host name.
        """
        parts = urlsplit(url)
        # It would log a traceback for whatever is no HTTP.
        logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
        application = web.Application(client_max_size=LARGEST)
        application.router.add_post(parts.path or "/", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, parts.hostname, parts.port or 80).start()
        return runner

    async def _answer(self, request: web.Request) -> web.Response:
        response = self.receives(request.headers, await request.read())
        if response.status == 204 and self._dice.random() < SLOW:
            await asyncio.sleep(SLOWNESS)
        return response

    def begin_bad_mood(self) -> None:
        """Refuse everything for BAD_MOOD seconds from now on."""
        self._well_at = self._clock() + BAD_MOOD
        logger.warning("refusing all receipts for %g s", BAD_MOOD)

    def receives(self, headers: Mapping[str, str], body: bytes) -> web.Response:
        """Judge a receipt."""
        if (left := self._well_at - self._clock()) > 0:
            return self._put_off("in a bad mood", left)
        try:
            message = self._webhook.verify(body, dict(headers))
        # The library takes the headers apart without looking first.
        except (WebhookVerificationError, ValueError) as error:
            self.counts["forged"] += 1
            logger.warning("a receipt is forged: %s", error)
            return web.Response(status=401, text=f"a receipt is forged: {error}")
        ride_id = int(message["data"]["ride_id"])
        webhook_id = headers["webhook-id"]
        if webhook_id in self._accepted:
            self.counts["twice"] += 1
            logger.info("the receipt of ride %d came again", ride_id, extra={"ride_id": ride_id})
            return web.Response(status=204)
        if ride_id % NEVER == 0:
            self.counts["never accepted"] += 1
            return web.Response(status=410, text=f"this customer never accepts ride {ride_id}")
        if self._dice.random() < PUT_OFF:
            return self._put_off("not now", 1)
        self.counts["accepted"] += 1
        self._accepted[webhook_id] = None
        if len(self._accepted) > MOST:
            del self._accepted[next(iter(self._accepted))]
        return web.Response(status=204)

    def _put_off(self, reason: str, seconds: float) -> web.Response:
        self.counts["put off"] += 1
        wait = {"Retry-After": str(math.ceil(seconds))}
        return web.Response(status=503, text=reason, headers=wait)

    def report(self) -> str:
        """How many receipts there were, and what became of them."""
        told = ["accepted", *sorted(kind for kind in self.counts if kind != "accepted")]
        return "receipts: " + ", ".join(f"{self.counts[kind]} {kind}" for kind in told)
