"""`python -m benchmarks.onlookers PORT NUMBER`: look on at the live page, as browsers do.

Each onlooker follows the page's events, until the program is ended. It fails when one of them is
not let in, or hung up on.
"""

import argparse
import contextlib
import select
import socket
from typing import NoReturn

FOLLOW = (
    "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: keep-alive\r\n"
    "Accept: text/event-stream\r\nCache-Control: no-cache\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n\r\n"
)
EVENTS = "/events"


def follow(port: int) -> socket.socket:
    """One onlooker, who has been let in. Raises ConnectionError."""
    onlooker = socket.create_connection(("127.0.0.1", port), timeout=10)
    onlooker.sendall(FOLLOW.format(path=EVENTS, port=port).encode())
    if not onlooker.recv(1 << 20).startswith(b"HTTP/1.1 200 "):
        raise ConnectionError("an onlooker was not let in")
    return onlooker


def look_on(port: int, number: int) -> NoReturn:
    """Read whatever comes, for ever. Raises ConnectionError."""
    with contextlib.ExitStack() as exits, select.epoll() as poll:
        onlookers = {}
        for _ in range(number):
            onlooker = exits.enter_context(follow(port))
            onlookers[onlooker.fileno()] = onlooker
            poll.register(onlooker, select.EPOLLIN)
        while True:
            for descriptor, _ in poll.poll():
                if not onlookers[descriptor].recv(1 << 20):
                    raise ConnectionError("an onlooker was hung up on")


def main() -> None:
    """Run until ended."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.onlookers", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("number", type=int)
    arguments = parser.parse_args()
    look_on(arguments.port, arguments.number)


if __name__ == "__main__":
    main()
