"""`python -m api`: the HTTP API, on granian, a production WSGI server.

It guarantees that a ride answered with 201 is committed and will reach every total. The ride, its
staged record and its idempotency key are one transaction: a crash at any moment leaves all of them
or none. A client that gets no answer, or a 503 that says that the ride may have been taken, can
retry if it sent an Idempotency-Key: it then gets the first answer.

Idle connections, and those whose request head is slow, take no thread, and are soon closed. A
request takes a thread once its head has arrived; there are as many threads as connections, so no
request waits for another's client. For slow bodies see `api.slow_clients`.
"""

import socket
import sys
from contextlib import suppress

import psycopg
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import Server

import api.app  # noqa: F401 (imported once, before the workers are forked)
from rocket_rides import logs, revisions, service, settings
from unified_log import database, process
from unified_log.errors import Refused, Unavailable, in_one_line

# What granian itself logs is logged as all else is.
LOGGED = {"loggers": {"_granian": {"handlers": [], "propagate": True}}}
LONGEST_HEAD = 64 * 1024  # bytes; the server's default, 408 KiB for each connection, would add up


def refuse_a_taken_port(host: str, port: int) -> None:
    """End with one line if the port is in use: granian would share it."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            # Connections of the previous run may linger on the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise SystemExit(
            f"can't listen on {host} port {port}: {error.strerror};"
            " API_HOST and API_PORT choose another address"
        ) from None


def refuse_the_wrong_database(url: str, cell: int | None) -> None:
    """End with one line if the URL leads to a pooler in transaction mode, or to another cell."""
    with suppress(Unavailable, psycopg.Error):  # it may come up later
        try:
            with database.connect(url, "api (starting)") as connection:
                revisions.require_cell(connection, cell)
        except Refused as reason:
            raise SystemExit(in_one_line(reason)) from None


def main() -> None:
    """Serve until SIGTERM or SIGINT. Starts even when the database is down."""
    process.take_no_arguments("api", __doc__)
    config = settings.load()
    service.configure(config)
    refuse_a_taken_port(config.api_host, config.api_port)
    refuse_the_wrong_database(config.postgres_url, config.cell)
    server = Server(
        "api.app:create_app",
        factory=True,
        interface=Interfaces.WSGI,
        address=config.api_host,
        port=config.api_port,
        workers=config.api_workers,
        blocking_threads=config.api_threads,
        backpressure=config.api_threads,  # that is, connections
        http=HTTPModes.http1,
        http1_settings=HTTP1Settings(
            header_read_timeout=int(config.api_client_timeout * 1000),
            max_buffer_size=LONGEST_HEAD,
        ),
        websockets=False,
        respawn_failed_workers=True,
        workers_kill_timeout=3,
        log_level=LogLevels.error,
        log_dictconfig=LOGGED,
    )
    logs.say(f"Listening on http://{config.api_address}")
    sys.exit(server.serve())


if __name__ == "__main__":
    service.run(main)
