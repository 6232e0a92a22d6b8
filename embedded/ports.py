"""`python -m embedded.ports`: whether a fleet can have its ports, before anything of it starts.

They are the API's, the live page's and, where the simulator receives the receipts, the one for
that. Ends with one sentence, and status 1, if one is taken: by another fleet, for instance.
"""

import socket
from collections.abc import Iterator
from typing import NamedTuple

from rocket_rides import fleet, process, settings
from rocket_rides.settings import PORTS, Settings


class Port(NamedTuple):
    """Where a process will listen, and which setting chooses it."""

    host: str
    number: int
    setting: str


def ports(config: Settings) -> Iterator[Port]:
    """Those of a whole fleet."""
    yield Port(config.api_host, config.api_port, "API_PORT")
    yield Port(
        config.watch_host, config.page_port, "WATCH_PORT" if config.watch_port else "API_PORT"
    )
    if not config.receipt_url:
        yield Port("127.0.0.1", config.api_port + PORTS - 1, "API_PORT")


def refusal(port: Port) -> str:
    """Why nobody can listen there; empty if one can."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in port.host else socket.AF_INET) as probe:
            # Connections of the previous run may linger on the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((port.host, port.number))
            probe.listen()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def main() -> None:
    """End with a sentence if the fleet can't start here."""
    process.take_no_arguments("embedded.ports", __doc__)
    config = settings.load()
    if found := fleet.servers(config.data_dir):
        raise SystemExit(fleet.in_the_way(config.data_dir, found))
    for port in ports(config):
        if why := refusal(port):
            raise SystemExit(
                f"can't listen on {port.host} port {port.number}: {why};"
                f" nothing was started; {port.setting} chooses another"
            )


if __name__ == "__main__":
    main()
