"""`python -m demo.embedded.ports`: whether a fleet can have its folder and its ports.

It is asked before anything starts. The ports are the API's, the live page's and, where the
simulator receives the receipts, the one for that. Ends with one sentence, and status 1, if not:
another fleet may have them, for instance.
"""

import os
import socket
from contextlib import ExitStack

from rocket_rides import fleet, process, settings
from rocket_rides.settings import PORTS

ANOTHER = "{0}_HOST and {0}_PORT choose another address"


def main() -> None:
    """End with a sentence if the fleet can't start here."""
    process.take_no_arguments("demo.embedded.ports", __doc__)
    config = settings.load()
    if found := fleet.servers(config.data_dir):
        raise SystemExit(fleet.in_the_way(config.data_dir, found))
    try:
        config.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemExit(
            f"the folder {config.data_dir} can't be used: {error.strerror}; nothing was started;"
            " DATA_DIR names another"
        ) from None
    # Who listens where, and how a person has it listen elsewhere.
    ports = [
        ("the API", config.api_host, config.api_port, ANOTHER.format("API")),
        ("the live page", config.watch_host, config.page_port, ANOTHER.format("WATCH")),
    ]
    if not config.receipt_url:
        receipts = config.api_port + PORTS - 1
        ports.append(("the simulator", "127.0.0.1", receipts, "its port is API_PORT + 2"))
    with ExitStack() as held:  # all at once: two settings may choose the same
        for who, host, port, elsewhere in ports:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                held.enter_context(socket.create_server((host, port), family=family))
            except OSError as error:
                raise SystemExit(
                    f"{who} can't listen on {host} port {port}: {os.strerror(error.errno or 0)};"
                    f" nothing was started; {elsewhere}"
                ) from None


if __name__ == "__main__":
    main()
