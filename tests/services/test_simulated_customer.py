"""The simulator as the customer, run as a process, to which the courier delivers."""

import asyncio
import socket
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from demo.simulator.mood import BAD_MOOD, BEGIN_BAD_MOOD
from lab.ports import free_ports
from rocket_rides.settings import DEMO_SECRET
from tests.support.simulator import Api, Simulator, run
from tests.support.world import eventually


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"http://127.0.0.1:{free_ports()}/receipts"
    monkeypatch.setenv("RECEIPT_URL", url)
    monkeypatch.setenv("RECEIPT_SECRET", DEMO_SECRET)
    return url


def attempt(url: str, ride_id: int) -> Verdict:
    """What one attempt to deliver the receipt of a ride comes to."""

    async def deliver() -> Verdict:
        async with Courier(url, DEMO_SECRET) as courier:
            receipt = Receipt(ride_id, Decimal("12.3"), datetime.now(UTC), f"r_{ride_id}")
            return await courier.deliver(receipt, 10)

    return asyncio.run(deliver())


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("RECEIPT_SECRET", "", "receipts can't be verified, so none are received"),
        ("RECEIPT_URL", "http://127.0.0.1:{taken}/", "receipts can't be received at http://127"),
    ],
)
def test_without_receipts_it_posts_all_the_same_and_says_why_once(
    name: str, value: str, line: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Api() as api:
        monkeypatch.setenv(name, value.format(taken=api.port))
        status, said = run(api.port, "--receipts", "--rides", "2", "--rate", "0")
    warning, posted = said.splitlines()
    assert warning.startswith(f"WARNING {line}")
    assert (status, posted) == (0, "INFO    2 rides posted, 0 retried")


def test_a_signal_ends_it_also_with_a_connection_open(url: str) -> None:
    port = int(url.rpartition(":")[2].partition("/")[0])
    with Api() as api:
        process = Simulator(api.port, "--receipts", "--rate", "20")
        eventually(lambda: api.posts)
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(
                b"POST /receipts HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nhalf"
            )
            process.terminate()
            said = process.ended(within=10)
    assert process.returncode == 0
    assert said.count("\n") == 1


def test_it_receives_receipts_and_a_signal_puts_it_in_a_bad_mood(url: str) -> None:
    port = int(url.rpartition(":")[2].partition("/")[0])
    with Api() as api:
        process = Simulator(api.port, "--receipts", "--rate", "20")
        eventually(lambda: is_open(port), "the receiver")
        refused = attempt(url, 200)
        process.send_signal(BEGIN_BAD_MOOD)
        posted = len(api.posts)
        eventually(lambda: len(api.posts) > posted)  # it has not ended
        put_off = attempt(url, 1)
        process.terminate()
        said = process.ended(within=10)
    assert refused == Verdict(Kind.REFUSED, "status 422: this customer never accepts ride 200")
    assert (put_off.kind, put_off.reason) == (Kind.RETRY, "status 503: in a bad mood")
    assert 0 < put_off.retry_after <= BAD_MOOD
    assert said.startswith("WARNING refusing all receipts for 5 s\n")
    assert said.endswith("INFO    receipts: 0 accepted, 1 never accepted, 1 put off\n")
    assert process.returncode == 0


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
