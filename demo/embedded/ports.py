"""Whether a fleet can have its folder and its ports.

The ports are the API's, the live page's and, where the simulator receives the receipts, the one for
that.
"""

import os
import socket
from contextlib import ExitStack

from demo.embedded.account import server_account
from demo.embedded.failures import NeverStarts
from demo.embedded.folder import require_unused, require_usable
from rocket_rides.settings import PORTS, Settings


def require_free(config: Settings) -> None:
    """Raise NeverStarts, with one sentence, if the fleet can't start here."""
    require_unused(config.data_dir)
    if config.embedded_postgres or config.embedded_redis:
        account = server_account()
        if config.embedded_postgres:
            account.require_name()
        require_usable(config.data_dir)
    ports = [
        ("the API", config.api_host, config.api_port, "API_PORT"),
        ("the live page", config.watch_host, config.page_port, "WATCH_PORT"),
    ]
    if not config.receipt_url:
        ports.append(("the simulator", "127.0.0.1", config.api_port + PORTS - 1, "API_PORT"))
    with ExitStack() as held:  # all at once: two settings may choose the same
        for who, host, port, setting in ports:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                held.enter_context(socket.create_server((host, port), family=family))
            except OSError as error:
                raise NeverStarts(
                    f"{who} can't listen on {host} port {port}: {os.strerror(error.errno or 0)};"
                    f" nothing was started; {setting} chooses another port"
                ) from None
