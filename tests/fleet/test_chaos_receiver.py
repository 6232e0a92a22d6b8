"""The receiver that chaos runs: what it notes, and how it fails."""

import asyncio
from datetime import UTC, datetime
from decimal import Decimal

import httpx
import pytest

from consumers.receipts.courier import Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from lab.chaos.deliveries import Mood
from lab.chaos.fleet import SETTINGS
from lab.chaos.receiver import LATE, Receiver

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
RECEIPT = Receipt(7, Decimal("2.018"), NOW, "id-7")
UNWELCOME = Receipt(8, Decimal("100.900"), NOW, "id-8")
SECRET = "whsec_" + "b3RoZXI=" * 4


SECONDS = 0.3  # for an attempt


def send(receiver: Receiver, *receipts: Receipt, secret: str = "") -> dict[str, Kind]:
    """What became of each, by its webhook-id."""

    async def all_of_them() -> list[Verdict]:
        async with Courier(receiver.url, secret or receiver.secret) as courier:
            return [await courier.deliver(receipt, SECONDS) for receipt in receipts]

    verdicts = zip(receipts, asyncio.run(all_of_them()), strict=True)
    return {receipt.webhook_id: verdict.kind for receipt, verdict in verdicts}


def test_the_receiver_notes_what_it_is_sent_and_refuses_for_good_what_it_never_takes() -> None:
    with Receiver() as receiver:
        came = send(receiver, RECEIPT, UNWELCOME)
        send(receiver, RECEIPT, secret=SECRET)
    assert came == {"id-7": Kind.DELIVERED, "id-8": Kind.REFUSED}
    noted = {(d.webhook_id, d.ride, d.distance, d.taken) for d in receiver.deliveries[:2]}
    assert noted == {("id-7", 7, Decimal("2.018"), NOW), ("id-8", 8, Decimal("100.900"), NOW)}
    assert {d.webhook_id: d.accepted for d in receiver.deliveries[:2]} == {
        "id-7": True,
        "id-8": False,
    }
    assert "No matching signature" in receiver.deliveries[2].flaw


def test_what_is_no_post_or_comes_elsewhere_is_no_receipt() -> None:
    with Receiver() as receiver:
        answers = [httpx.get(receiver.url), httpx.post(f"{receiver.url}/elsewhere")]
    assert [answer.status_code for answer in answers] == [400, 400]
    assert [bool(delivery.flaw) for delivery in receiver.deliveries] == [True, True]
    assert not any(delivery.accepted for delivery in receiver.deliveries)


@pytest.mark.parametrize(
    ("mood", "kind"),
    [
        (Mood.BUSY, Kind.RETRY),
        (Mood.HANGING, Kind.RETRY),
        (Mood.CUTTING, Kind.RETRY),
        (Mood.AWAY, Kind.AWAY),
    ],
)
def test_the_receiver_fails_on_demand_and_is_well_again(mood: Mood, kind: Kind) -> None:
    with Receiver() as receiver:
        with receiver.failing(mood):
            assert send(receiver, RECEIPT) == {"id-7": kind}
        assert not any(delivery.accepted for delivery in receiver.deliveries)
        assert send(receiver, RECEIPT) == {"id-7": Kind.DELIVERED}


def test_the_receiver_takes_a_receipt_and_says_so_too_late() -> None:
    """As another that is asked again, it then has the same receipt twice."""
    assert float(SETTINGS["RECEIPT_TIMEOUT"]) < LATE
    with Receiver() as receiver:
        with receiver.failing(Mood.LATE):
            assert send(receiver, RECEIPT) == {"id-7": Kind.RETRY}
        assert send(receiver, RECEIPT) == {"id-7": Kind.DELIVERED}
    assert [delivery.accepted for delivery in receiver.deliveries] == [True, True]
