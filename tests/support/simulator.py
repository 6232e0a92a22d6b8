"""The simulator in a process of its own, and a small HTTP server that stands in for the API."""

import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Thread
from urllib.parse import parse_qs

from tests.support.forks import Process

DROP = 0  # instead of a status: hang up without an answer


class Api(ThreadingHTTPServer):
    """Answers POST /rides with `statuses` in turn, then 201; remembers what was posted."""

    daemon_threads = True

    def __init__(self, port: int, statuses: Iterable[int] = ()) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.statuses = itertools.chain(statuses, itertools.repeat(201))
        self.posts: list[tuple[str, Decimal]] = []

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.posts]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # a whole answer in one packet: in two, it would wait for a delayed ACK
    server: Api

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/readyz" else 404)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.posts.append((self.headers["Idempotency-Key"], Decimal(form["distance"][0])))
        status = next(self.server.statuses)
        if status == DROP:
            self.close_connection = True
        else:
            self.answer(status if self.path == "/rides" else 404)

    def answer(self, status: int) -> None:
        body = f"this is\n{status}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(port: int = 0, statuses: Iterable[int] = ()) -> Iterator[Api]:
    with Api(port, statuses) as api:
        Thread(target=api.serve_forever, args=(0.01,), daemon=True).start()
        yield api
        api.shutdown()


class Simulator(Process):
    """`python -m demo.simulator`, and its output."""

    def __init__(self, port: int, *arguments: str) -> None:
        self.stdout = NamedTemporaryFile("r")  # noqa: SIM115 (closed when the process has ended)
        super().__init__(
            "demo.simulator",
            ["--no-receipts", *arguments],
            os.environ | {"API_URL": f"http://127.0.0.1:{port}/", "LOG_LEVEL": "INFO"},
            Path(self.stdout.name),
        )

    def ended(self, within: float) -> str:
        """Wait until it ends; returns its output since the last read."""
        try:
            self.wait(within)
        finally:
            self.kill()
        with self.stdout:
            return self.stdout.read()


def run(port: int, *arguments: str) -> tuple[int, str]:
    """Run the simulator; returns its exit status and output."""
    process = Simulator(port, *arguments)
    said = process.ended(within=30)
    return process.wait(), said
