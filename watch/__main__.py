"""`python -m watch`: the live page, and the metrics.

It shows what flows, how far everyone is, what broke and what healed. It reads Postgres and Redis,
and changes nothing. (The demo hands it buttons that break the fleet.) No other process needs it.
What it shows is gathered anew, or counted in the consumers' own transactions: a crash loses only
the feed, and the charts' last fifteen minutes.
"""

import os
import resource
import signal
import socket
import sys
from collections.abc import Callable

from aiohttp import web

from rocket_rides import logs, service, settings, telemetry
from rocket_rides.settings import Settings
from unified_log import process
from watch.broadcast import WRITE_TIME
from watch.gathering import Gatherer
from watch.server import IDLE_TIME, Buttons, Site, log_no_bad_requests
from watch.watching import Watcher


def listen(config: Settings) -> socket.socket:
    """Take the port, or end with one line."""
    family = socket.AF_INET6 if ":" in config.watch_host else socket.AF_INET
    address = config.watch_host, config.page_port
    try:
        listener = socket.create_server(address, family=family, backlog=1024)
    except OSError as error:
        raise SystemExit(
            f"can't listen on {config.watch_host} port {config.page_port}:"
            f" {os.strerror(error.errno or 0)}; WATCH_HOST and WATCH_PORT choose another address"
        ) from None
    if sys.platform == "linux":
        # Each connection inherits it: aiohttp would wait for ever for a client that does not read.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(WRITE_TIME * 1000))
    return listener


def serve(config: Settings, listener: socket.socket, buttons: Buttons | None) -> None:
    """Serve until SIGTERM or SIGINT."""
    watcher = Watcher(Gatherer(config).gather)
    application = Site(config, watcher, buttons).application()
    if telemetry.is_on():
        from watch.exporting import export  # only then: it takes memory

        application.on_startup.append(lambda _: export(watcher))
    web.run_app(
        application,
        sock=listener,
        access_log=None,
        print=lambda _: logs.say(f"Listening on http://{config.page_address}"),
        keepalive_timeout=IDLE_TIME,
        lingering_time=1,
        auto_decompress=False,  # no browser compresses a form
        shutdown_timeout=0.2,
    )


def main(buttons: Callable[[Settings], Buttons | None] = lambda _: None) -> None:
    """Serve until SIGTERM or SIGINT. Starts even when the servers are down.

    `buttons` returns what a person can change on the page, with these settings.
    """
    process.take_no_arguments("watch", __doc__)
    config = settings.load()
    service.configure(config)
    telemetry.configure(config, "watch")
    log_no_bad_requests()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit())  # until it serves
    listener = listen(config)
    # A thousand onlookers need as many files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4096), most))
    serve(config, listener, buttons(config))
    telemetry.end()
    # All is closed. The interpreter's own end would take seconds where the machine is busy.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    service.run(main)
