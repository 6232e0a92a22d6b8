"""Delivers receipts: signs each, posts it to the receiver, and says what came of it.

An attempt is one POST, signed after Standard Webhooks with the time of that attempt. It has one
time limit in all, from the look-up of the address to the end of the answer's head. The verdict is
read off the head: no redirect is followed, nothing is decompressed, and a body that does not end
holds up nobody. `verdict` says what an answer means.

A process that dies in an attempt leaves open whether the receiver has the receipt. It holds nothing
that others would need: the next attempt is like the first.
"""

import asyncio
import os
import ssl
import time
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Self
from urllib.parse import urljoin

import aiohttp
import certifi
from aiohttp import hdrs
from standardwebhooks import Webhook

from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import (
    NOT_HTTP,
    Answer,
    Kind,
    Verdict,
    in_one_line,
    judge,
    seconds_of,
)

# Of an answer's body: bytes that are kept for a person, and seconds that are waited for it.
MOST_KEPT, LONGEST_BODY = 1024, 0.25


class Progress(SimpleNamespace):
    """How far a request came."""

    reused = sent = False


def _noticing() -> aiohttp.TraceConfig:
    """Has aiohttp tell a request's Progress."""

    async def reused(_session: Any, context: SimpleNamespace, _: Any) -> None:
        context.trace_request_ctx.reused = True

    async def sent(_session: Any, context: SimpleNamespace, _: Any) -> None:
        context.trace_request_ctx.sent = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(reused)
    trace.on_request_headers_sent.append(sent)
    return trace


class Courier:
    """Makes attempts, each within its own time limit. For one event loop, as a context manager.

    `url` and `secret` are as `rocket_rides.settings` takes them.
    """

    def __init__(self, url: str, secret: str) -> None:
        self._url = url
        self._webhook = Webhook(secret)

    async def __aenter__(self) -> Self:
        # A certificate is checked against the file that SSL_CERT_FILE names, else certifi's.
        trusted = os.environ.get("SSL_CERT_FILE") or certifi.where()
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ssl=await asyncio.to_thread(ssl.create_default_context, cafile=trusted)
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers={hdrs.USER_AGENT: "rocket-rides", hdrs.ACCEPT: "*/*"},
            skip_auto_headers=[hdrs.ACCEPT_ENCODING],
            trace_configs=[_noticing()],
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def deliver(self, receipt: Receipt, seconds: float) -> Verdict:
        """Make one attempt, which is given up after so many seconds."""
        body = receipt.body()
        now = datetime.fromtimestamp(int(time.time()), UTC)
        headers = {
            "content-type": "application/json",
            "webhook-id": receipt.webhook_id,
            "webhook-timestamp": f"{now.timestamp():.0f}",
            "webhook-signature": self._webhook.sign(receipt.webhook_id, now, body.decode()),
        }
        progress = Progress()
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._post(body, headers, progress)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                    if isinstance(error, aiohttp.ClientConnectorError) or not progress.reused:
                        raise
                # A kept connection was dead, and no byte of an answer came: a new one is no worse.
                progress.reused = False
                return await self._post(body, headers, progress)
        except TimeoutError:
            why = f"timed out after {seconds:.3g} s"
            return Verdict(Kind.RETRY if progress.sent else Kind.AWAY, why)
        except aiohttp.ClientConnectorError as error:
            return Verdict(Kind.AWAY, in_one_line(str(error)))
        except aiohttp.ClientResponseError:
            return Verdict(Kind.RETRY, NOT_HTTP)
        except (aiohttp.ClientError, OSError) as error:
            why = in_one_line(str(error)) or type(error).__name__
            return Verdict(Kind.RETRY if progress.sent else Kind.AWAY, why)

    async def _post(self, body: bytes, headers: dict[str, str], progress: Progress) -> Verdict:
        async with self._session.post(
            self._url, data=body, headers=headers, allow_redirects=False, trace_request_ctx=progress
        ) as response:
            begins = await _beginning(response)
            if 200 <= response.status < 300:
                return judge(Answer(response.status))
            target = response.headers.get(hdrs.LOCATION, "")
            return judge(
                Answer(
                    response.status,
                    begins,
                    seconds_of(response.headers.get(hdrs.RETRY_AFTER, "")),
                    urljoin(self._url, target) if target and response.status < 400 else "",
                )
            )


async def _beginning(response: aiohttp.ClientResponse) -> bytes:
    """How a body begins. Where it does not end soon, its connection is not kept."""
    begins = b""
    try:
        async with asyncio.timeout(LONGEST_BODY):
            while len(begins) < MOST_KEPT and (part := await response.content.readany()):
                begins += part
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    return begins[:MOST_KEPT]
