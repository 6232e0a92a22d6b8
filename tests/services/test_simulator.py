"""The simulator, run as a process: its rides, which an API answers as a test says; its receipts."""

import asyncio
import itertools
import os
import signal
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from demo.simulator.mood import BAD_MOOD, BEGIN_BAD_MOOD
from lab.ports import free_ports
from rocket_rides.settings import DEMO_SECRET
from tests.support.forks import Process
from tests.support.receiver import DISCONNECT, Answer, Receiver, Request
from tests.support.world import Service, eventually

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


Start = Callable[..., Service]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a simulator that posts to the API on this port."""
    started: list[Service] = []

    def start(port: int, *arguments: str) -> Service:
        output = tmp_path / "output"
        given = os.environ | {"API_URL": f"http://127.0.0.1:{port}/", "LOG_LEVEL": "INFO"}
        process = Process("demo.simulator", ["--no-receipts", *arguments], given, output)
        started.append(Service(process, output))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def end(simulator: Service) -> tuple[int, str]:
    """Its exit status, and what it has said."""
    return simulator.ends(), simulator.output.read_text()


def test_it_posts_exactly_as_many_rides_as_asked_each_with_a_key_of_its_own(start: Start) -> None:
    with Api() as api:
        ended = end(start(api.port, "--rides", "40", "--rate", "0", "--concurrency", "7"))
    assert ended == (0, "INFO    40 rides posted, 0 retried\n")
    assert len(set(api.keys)) == len(api.posts) == 40
    assert all(uuid.UUID(key).version == 4 for key in api.keys)
    assert all(5 <= metres <= 1000 for _, metres in api.posts)
    assert len({metres for _, metres in api.posts}) > 30


def test_a_ride_is_repeated_with_its_key_until_it_is_answered(start: Start) -> None:
    with Api(statuses=[503, DROP, 500, 201, 502]) as api:
        ended = end(start(api.port, "--rides", "3", "--rate", "0"))
    assert ended == (0, "INFO    3 rides posted, 4 retried\n")
    assert sorted(Counter(api.posts).values()) == [1, 2, 4]
    assert len(set(api.keys)) == 3


def test_a_refused_ride_is_reported_counted_and_not_repeated(start: Start) -> None:
    with Api(statuses=[201, 422]) as api:
        status, said = end(start(api.port, "--rides", "3", "--rate", "0"))
    assert len(api.posts) == len(set(api.keys)) == 3
    assert said.splitlines() == [
        f"ERROR   a ride of {api.posts[1][1]} m got 422: this is 422",
        "INFO    2 rides posted, 0 retried, 1 refused",
    ]
    assert status == 1


def test_it_says_once_that_it_waits_for_an_api_that_comes_up_later(start: Start) -> None:
    port = free_ports()
    simulator = start(port, "--rides", "2", "--rate", "0").says("waiting for the API at ")
    with Api(port) as api:
        status, said = end(simulator)
    assert len(api.posts) == 2
    assert (status, said.splitlines()[1:]) == (0, ["INFO    2 rides posted, 0 retried"])


def test_a_signal_ends_it_while_it_waits_for_the_api(start: Start) -> None:
    simulator = start(free_ports()).says("waiting")
    os.kill(simulator.process.pid, signal.SIGINT)
    status, said = end(simulator)
    assert (status, said.splitlines()[1:]) == (0, ["INFO    0 rides posted, 0 retried"])


def test_a_signal_ends_it_with_one_line_while_every_ride_fails(start: Start) -> None:
    with Api(statuses=itertools.repeat(503)) as api:
        simulator = start(api.port, "--rate", "50")
        eventually(lambda: len(api.posts) >= 3)
        assert simulator.stop() == 0
    [line] = simulator.output.read_text().splitlines()
    assert " rides posted, " in line


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """Where the simulator receives receipts."""
    port = free_ports()
    monkeypatch.setenv("RECEIPT_URL", f"http://127.0.0.1:{port}/receipts")
    monkeypatch.setenv("RECEIPT_SECRET", DEMO_SECRET)
    return port


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("RECEIPT_SECRET", "", "receipts can't be verified, so none are received"),
        ("RECEIPT_URL", "http://127.0.0.1:{taken}/", "receipts can't be received at http://127"),
    ],
)
@pytest.mark.usefixtures("port")
def test_without_receipts_it_posts_all_the_same_and_says_why_once(
    name: str, value: str, line: str, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Api() as api:
        monkeypatch.setenv(name, value.format(taken=api.port))
        status, said = end(start(api.port, "--receipts", "--rides", "2", "--rate", "0"))
    warning, posted = said.splitlines()
    assert warning.startswith(f"WARNING {line}")
    assert (status, posted) == (0, "INFO    2 rides posted, 0 retried")


def test_a_signal_ends_it_also_with_a_connection_open(start: Start, port: int) -> None:
    with Api() as api:
        simulator = start(api.port, "--receipts", "--rate", "20")
        eventually(lambda: api.posts)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(
                b"POST /receipts HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"
            )
            assert simulator.stop() == 0
    assert simulator.output.read_text().count("\n") == 1


def attempt(port: int, ride_id: int) -> Verdict:
    """What one attempt to deliver the receipt of a ride comes to."""

    async def deliver() -> Verdict:
        async with Courier(f"http://127.0.0.1:{port}/receipts", [DEMO_SECRET]) as courier:
            receipt = Receipt(ride_id, Decimal("12.3"), datetime.now(UTC), f"r_{ride_id}")
            return await courier.deliver(receipt, 10)

    return asyncio.run(deliver())


def test_it_receives_receipts_and_a_signal_puts_it_in_a_bad_mood(start: Start, port: int) -> None:
    with Api() as api:
        simulator = start(api.port, "--receipts", "--rate", "20")
        eventually(lambda: is_open(port), "the receiver")
        refused = attempt(port, 200)
        os.kill(simulator.process.pid, BEGIN_BAD_MOOD)
        simulator.says("WARNING refusing all receipts for 5 s\n")
        put_off = attempt(port, 1)
        assert simulator.stop() == 0
    assert refused == Verdict(Kind.REFUSED, "status 410: this customer never accepts ride 200")
    assert (put_off.kind, put_off.reason) == (Kind.RETRY, "status 503: in a bad mood")
    assert 0 < put_off.retry_after <= BAD_MOOD
    said = simulator.output.read_text()
    assert said.endswith("INFO    receipts: 0 accepted, 1 never accepted, 1 put off\n")


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
