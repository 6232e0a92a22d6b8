"""Delivers receipts: signs each, posts it to the receiver, and says what came of it.

An attempt is one POST, signed after Standard Webhooks with the time of that attempt; if it was sent
on a kept connection that turns out to be dead, it is sent once more. It has one time limit in all,
from the look-up of the address to the end of the answer's head. The verdict is read off the head:
no redirect is followed, nothing is decompressed, and neither interim answers nor a body that do not
end hold up anybody.
(If bytes that are not HTTP arrive together with the head, the answer counts as not HTTP.)
"""

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Self

import aiohttp
import certifi
from aiohttp import hdrs
from standardwebhooks import Webhook

from consumers.receipts.connections import Connections
from consumers.receipts.interim import Answer
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import NOT_HTTP, Kind, Verdict, judge, one_line, seconds_of
from rocket_rides import telemetry
from unified_log.errors import Refused

LONGEST_LINE = 64 * 1024  # bytes, of an answer's head
# Of its body: the bytes that are read, so that the connection can be kept, the bytes that are kept
# for a person, and the seconds that reading may take.
MOST_READ, MOST_KEPT, LONGEST_BODY = 64 * 1024, 1024, 0.25

LOST = "the connection was lost before the end of the answer's head"


class Courier:
    """Makes attempts, each within its own time limit. For one event loop, as a context manager.

    `url` and `secrets` are as `rocket_rides.settings` takes them: each attempt is signed with each
    secret, so that receivers can change from one to the next. By `clock` connections grow old.
    Raises Refused if no certificate could be checked at all.
    """

    def __init__(
        self, url: str, secrets: list[str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._url = url
        self._checked = _authorities() if url.startswith("https:") else True
        self._webhooks = [Webhook(secret) for secret in secrets]

        self._connections = Connections(self._session, clock)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.close()

    def _session(self) -> aiohttp.ClientSession:
        """A new one, with connections of its own."""
        trace = aiohttp.TraceConfig()
        trace.on_connection_reuseconn.append(_note_reused)
        trace.on_request_headers_sent.append(_require_time)
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._checked),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            headers={hdrs.USER_AGENT: "rocket-rides"},
            skip_auto_headers=[hdrs.ACCEPT_ENCODING],
            trace_configs=[trace],
            response_class=Answer,
        )

    async def deliver(self, receipt: Receipt, seconds: float) -> Verdict:
        """Make one attempt, which is given up after so many seconds."""
        # Nothing is sent after the deadline, however long the process hangs.
        deadline = time.monotonic() + seconds
        async with self._connections.session() as session:
            return await self._deliver(session, receipt, seconds, deadline)

    async def _deliver(
        self, session: aiohttp.ClientSession, receipt: Receipt, seconds: float, deadline: float
    ) -> Verdict:
        sending = SimpleNamespace(deadline=deadline, is_reused=False, has_begun=False)
        body = receipt.body()
        headers = self._signed(receipt.webhook_id, body)
        if receipt.trace:  # where spans are exported, the attempt's own replaces the child
            headers |= receipt.trace.child().headers()
        with telemetry.below(receipt.trace):
            try:
                async with asyncio.timeout(seconds):
                    response = await self._post(session, body, headers, sending)
            except TimeoutError:
                why = f"timed out after {seconds:.3g} s"
            except aiohttp.ClientResponseError:
                why = NOT_HTTP
            except aiohttp.ServerDisconnectedError:
                why = LOST
            except (aiohttp.ClientError, OSError, ValueError) as error:
                why = one_line(str(error)) or type(error).__name__
            else:
                async with response:
                    asked = seconds_of(response.headers.get(hdrs.RETRY_AFTER, ""))
                    return judge(response.status, await _beginning(response), asked)
        # Once sending has begun, the receiver may have the whole request.
        return Verdict(Kind.RETRY if sending.has_begun else Kind.AWAY, why)

    async def _post(
        self,
        session: aiohttp.ClientSession,
        body: bytes,
        headers: dict[str, str],
        sending: SimpleNamespace,
    ) -> aiohttp.ClientResponse:
        """The answer, as soon as its head is complete. aiohttp itself repeats no POST."""
        post = partial(
            session.post,
            self._url,
            data=body,
            headers=headers,
            allow_redirects=False,
            trace_request_ctx=sending,
        )
        try:
            return await post()
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if not sending.is_reused or _is_answered(error):
                raise
        # A connection that was kept is dead, and no byte of an answer came.
        return await post()

    def _signed(self, webhook_id: str, body: bytes) -> dict[str, str]:
        """The headers of an attempt that is made now."""
        now = datetime.fromtimestamp(int(time.time()), UTC)
        return {
            "content-type": "application/json",
            "webhook-id": webhook_id,
            "webhook-timestamp": f"{now.timestamp():.0f}",
            "webhook-signature": " ".join(
                webhook.sign(webhook_id, now, body.decode()) for webhook in self._webhooks
            ),
        }


async def _note_reused(_session: object, context: SimpleNamespace, _: object) -> None:
    """It goes out on a connection that was kept."""
    context.trace_request_ctx.is_reused = True


async def _require_time(_session: object, context: SimpleNamespace, _: object) -> None:
    """Raise TimeoutError where the worker has hung until after its deadline.

    aiohttp calls this right before it sends.
    """
    sending = context.trace_request_ctx
    if time.monotonic() > sending.deadline:
        raise TimeoutError
    sending.has_begun = True


def _is_answered(error: aiohttp.ClientConnectionError) -> bool:
    """Whether some of an answer's head had come when the connection was lost."""
    return isinstance(error, aiohttp.ServerDisconnectedError) and not isinstance(error.message, str)


def _authorities() -> ssl.SSLContext:
    """The authorities that a certificate may come from: those in SSL_CERT_FILE, else certifi's."""
    trusted = os.environ.get("SSL_CERT_FILE") or certifi.where()
    try:
        return ssl.create_default_context(cafile=trusted)
    except OSError as error:
        raise Refused(
            f"can't read certificate authorities from {trusted}: {error.strerror or error};"
            " SSL_CERT_FILE chooses another file"
        ) from None


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """How a body begins. Where it does not end soon, its connection is not kept."""
    begins = b""
    try:
        async with asyncio.timeout(LONGEST_BODY):
            while len(begins) < MOST_READ and (part := await response.content.readany()):
                begins += part
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return begins[:MOST_KEPT]
