"""The simulator as the customer, run as a process, to which the courier delivers."""

import asyncio
import re
import socket
import time
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count

import pytest

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from demo.simulator.mood import BAD_MOOD, BEGIN_BAD_MOOD
from lab.ports import free_ports
from rocket_rides.settings import DEMO_SECRET
from tests.support.simulator import Api, Simulator, run, serving
from tests.support.world import PATIENCE, eventually


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"http://127.0.0.1:{free_ports()}/receipts"
    monkeypatch.setenv("RECEIPT_URL", url)
    monkeypatch.setenv("RECEIPT_SECRET", DEMO_SECRET)
    return url


def deliver(url: str, api: Api, rides: int, first: int) -> dict[int, Verdict]:
    """Deliver the receipts of that many rides, as they are posted, until none is put off.

    The rides are numbered from `first`.
    """
    final: dict[int, Verdict] = {}
    deadline = time.monotonic() + PATIENCE
    while len(final) < rides:
        assert time.monotonic() < deadline, "nobody takes the receipts"
        posted = dict(zip(count(first), api.posts[:rides], strict=False))
        due = {ride: metres for ride, (_, metres) in posted.items() if ride not in final}
        final |= {
            ride_id: verdict
            for ride_id, verdict in zip(due, attempts(url, due), strict=True)
            if verdict.kind in (Kind.DELIVERED, Kind.REFUSED)
        }
    return final


def attempts(url: str, rides: dict[int, Decimal]) -> list[Verdict]:
    """What one attempt for each of these rides, of so many metres, comes to."""

    async def deliver() -> list[Verdict]:
        async with Courier(url, DEMO_SECRET) as courier:
            return await asyncio.gather(
                *(
                    courier.deliver(Receipt(ride_id, metres, datetime.now(UTC), f"r_{ride_id}"), 10)
                    for ride_id, metres in rides.items()
                )
            )

    return asyncio.run(deliver())


def test_it_receives_the_receipts_of_its_rides(url: str) -> None:
    with serving() as api:
        process = Simulator(api.server_port, "--receipts", "--rate", "100")
        verdicts = deliver(url, api, 40, first=180)
        process.terminate()
        said = process.ended(within=15)
    refused = {ride: v for ride, v in verdicts.items() if v.kind is Kind.REFUSED}
    assert refused == {
        200: Verdict(Kind.REFUSED, "status 422: this customer never accepts ride 200")
    }
    # One in ten is put off, so perhaps none of these.
    assert re.search(r"INFO    receipts: \d+ accepted, 1 never accepted\b", said)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("RECEIPT_SECRET", "", "receipts can't be verified, so none are received"),
        ("RECEIPT_URL", "https://127.0.0.1:1/", "receipts can't be received at https://127"),
        ("RECEIPT_URL", "http://127.0.0.1:{taken}/", "receipts can't be received at http://127"),
    ],
)
def test_without_receipts_it_posts_all_the_same_and_says_why_once(
    name: str, value: str, line: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving() as api:
        monkeypatch.setenv(name, value.format(taken=api.server_port))
        status, said = run(api.server_port, "--receipts", "--rides", "2", "--rate", "0")
    warning, posted = said.splitlines()
    assert warning.startswith(f"WARNING {line}")
    assert (status, posted) == (0, "INFO    2 rides posted, 0 retried")


def test_a_signal_ends_it_also_with_a_connection_open(url: str) -> None:
    port = int(url.rpartition(":")[2].partition("/")[0])
    with serving() as api:
        process = Simulator(api.server_port, "--receipts", "--rate", "20")
        eventually(lambda: api.posts)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(
                b"POST /receipts HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"
            )
            process.terminate()
            said = process.ended(within=10)
    assert process.returncode == 0
    assert said.count("\n") == 1


def test_a_signal_puts_it_in_a_bad_mood_as_soon_as_it_receives(url: str) -> None:
    port = int(url.rpartition(":")[2].partition("/")[0])
    with serving() as api:
        process = Simulator(api.server_port, "--receipts", "--rate", "20")
        eventually(lambda: is_open(port), "the receiver")
        process.send_signal(BEGIN_BAD_MOOD)
        eventually(lambda: len(api.posts) > 1)  # it has not ended
        verdicts = attempts(url, {ride_id: api.posts[ride_id - 1][1] for ride_id in (1, 2)})
        process.terminate()
        said = process.ended(within=10)
    assert {(each.kind, each.reason) for each in verdicts} == {
        (Kind.RETRY, "status 503: in a bad mood")
    }
    assert all(0 < (each.retry_after or 0) <= BAD_MOOD for each in verdicts)
    assert said.startswith("WARNING refusing all receipts for 5 s\n")
    assert process.returncode == 0


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
