"""`python -m demo.embedded.ports`: whether a fleet can have its ports, before anything starts.

They are the API's, the live page's and, where the simulator receives the receipts, the one for
that. Ends with one sentence, and status 1, if one is taken: by another fleet, for instance.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

from rocket_rides import fleet, process, settings
from rocket_rides.settings import PORTS, Settings


class Port(NamedTuple):
    """Where a process will listen, and how a person has it listen elsewhere."""

    process: str
    host: str
    number: int
    elsewhere: str


def ports(config: Settings) -> Iterator[Port]:
    """Those of a whole fleet."""
    another = "{0}_HOST and {0}_PORT choose another address".format
    yield Port("the API", config.api_host, config.api_port, another("API"))
    yield Port("the live page", config.watch_host, config.page_port, another("WATCH"))
    if not config.receipt_url:
        receipts = config.api_port + PORTS - 1
        yield Port("the simulator", "127.0.0.1", receipts, "its port is API_PORT + 2")


def listening(port: Port) -> socket.socket:
    """A socket that listens there. Raises OSError where nobody can."""
    probe = socket.socket(socket.AF_INET6 if ":" in port.host else socket.AF_INET)
    try:
        # Connections of the previous run may linger on the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((port.host, port.number))
        probe.listen()
    except OSError:
        probe.close()
        raise
    return probe


def main() -> None:
    """End with a sentence if the fleet can't start here."""
    process.take_no_arguments("demo.embedded.ports", __doc__)
    config = settings.load()
    if found := fleet.servers(config.data_dir):
        raise SystemExit(fleet.in_the_way(config.data_dir, found))
    with ExitStack() as held:  # all at once: two settings may choose the same
        for port in ports(config):
            try:
                held.enter_context(listening(port))
            except OSError as error:
                raise SystemExit(
                    f"{port.process} can't listen on {port.host} port {port.number}:"
                    f" {error.strerror}; nothing was started; {port.elsewhere}"
                ) from None


if __name__ == "__main__":
    main()
