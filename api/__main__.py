"""`python -m api`: the HTTP API, on granian, a production WSGI server.

It guarantees that a ride answered with 201 is committed, and will reach every total. Ride, staged
record and idempotency key are one transaction: a crash at any moment leaves all of them or none.
A client that gets no answer, or a 503 that says so, does not know which; a client that sends an
Idempotency-Key asks again, and gets the first answer.

Idle connections and slow heads are held by the server's event loop, and not for long. A thread is
taken by a request whose head has come in; there are as many threads as connections, so that no
request waits for the clients of the others. Slow bodies: `api.slow_clients`.
"""

import socket
import sys
from pathlib import Path

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server import Server

from rocket_rides import fleet, process, settings

LONGEST_HEAD = 64 * 1024  # bytes; the server's own 408 KiB, for each connection, would add up


def refuse_a_taken_port(host: str, port: int, data: Path) -> None:
    """End with one line when somebody listens there: granian would share the port with them.

    A fleet that was started a second time ends with whichever of its processes is the first to
    end, and that one's line is what a person sees. So it names the fleet in the way, as `servers`
    would.
    """
    try:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            # Connections of the run before may linger on the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        fleet.refuse_to_join(data)
        raise SystemExit(f"can't listen on {host} port {port}: {error.strerror}") from None


def main() -> None:
    """Serve until SIGTERM or SIGINT. Does not need the database to be there."""
    process.take_no_arguments("api", __doc__)
    config = settings.load()
    refuse_a_taken_port(config.api_host, config.api_port, config.data_dir)
    fleet.end_with_honcho(process.terminate)
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
    )
    print(f"Listening on http://{config.api_address}", flush=True)  # noqa: T201
    sys.exit(server.serve())


if __name__ == "__main__":
    main()
