"""A receiver of receipts that answers each at once: `python -m lab.benchmarks.receiver PORT`.

A bare asyncio protocol: it reads a request, and answers 204. It verifies no signatures, since that
is the customer's cost and not the workers'. A server for applications would take processor time
that the workers need: granian costs twice as much for each receipt.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from functools import partial
from socket import create_connection

from lab.benchmarks.load import is_whole
from lab.benchmarks.stand import HOST, Stand
from lab.ports import free_ports
from lab.until import until
from unified_log.process import Parser

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Client(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if is_whole(self._received):
            self._received = b""
            self._transport.write(ANSWER)


async def serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Client, HOST, port, backlog=1024)
    await server.serve_forever()


@contextlib.contextmanager
def receiver(stand: Stand) -> Iterator[str]:
    port = free_ports()
    with stand.service("lab.benchmarks.receiver", str(port)):
        connect = partial(create_connection, (HOST, port))
        until(connect, "the receiver does not listen", away=(OSError,)).close()
        yield f"http://{HOST}:{port}/receipts"


if __name__ == "__main__":
    parser = Parser("python -m lab.benchmarks.receiver", __doc__)
    parser.add_argument("port", type=int)
    asyncio.run(serve(parser.parse_args().port))
