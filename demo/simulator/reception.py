"""Where the customer receives: a small HTTP server at RECEIPT_URL, within the simulator's loop."""

import asyncio
import logging
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web

from demo.simulator.customer import Reply

MOST = 64 * 1024  # bytes of a request's body

Receive = Callable[[dict[str, str], bytes], Reply]


async def open_at(url: str, receive: Receive) -> web.AppRunner:
    """Listen at the host, port and path of `url`; `receive` judges each POST.

    Raises OSError where that is impossible: the port is taken, or the host is another machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "http":
        raise OSError("only http is received here")

    async def answer(request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        reply = receive(headers, await request.read())
        await asyncio.sleep(reply.delay)
        return web.Response(status=reply.status, text=reply.text, headers=dict(reply.headers))

    # It would log a traceback for whatever is no HTTP.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    application = web.Application(client_max_size=MOST)
    application.router.add_post(parts.path or "/", answer)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, parts.hostname, parts.port or 80).start()
    return runner
