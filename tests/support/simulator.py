"""The simulator in a process of its own, and a small HTTP server that stands in for the API."""

import itertools
import os
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import parse_qs

from tests.support.forks import Process
from tests.support.receiver import DISCONNECT, Answer, Receiver, Request

DROP = 0  # instead of a status: hang up without an answer


class Api(Receiver):
    """Answers POST /rides with `statuses` in turn, then 201; remembers what was posted."""

    def __init__(self, port: int = 0, statuses: Iterable[int] = ()) -> None:
        super().__init__(port=port)
        self._statuses = itertools.chain(statuses, itertools.repeat(201))
        self.behaviour = self._answer

    def _answer(self, request: Request) -> Answer:
        if request.path != "/rides":
            return Answer(200 if request.path == "/readyz" else 404)
        status = next(self._statuses)
        return Answer(status, body=f"this is\n{status}".encode()) if status else DISCONNECT

    @property
    def posts(self) -> list[tuple[str, Decimal]]:
        """The key and the metres of each ride."""
        return [
            (of.headers["idempotency-key"], Decimal(parse_qs(of.body.decode())["distance"][0]))
            for of in list(self.requests)
            if of.path == "/rides"
        ]

    @property
    def keys(self) -> list[str]:
        return [key for key, _ in self.posts]


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
