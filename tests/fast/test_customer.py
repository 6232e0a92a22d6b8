"""The simulator as the customer: what it accepts, and what it says is wrong."""

import json
import logging
import random
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from standardwebhooks import Webhook

from demo.simulator import customer
from demo.simulator.customer import LATE, MISSING, NEVER, Customer, Reply
from demo.simulator.mood import BAD_MOOD
from rocket_rides.settings import DEMO_SECRET


class Scene:
    """A customer with a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.customer = Customer(DEMO_SECRET, random.Random(1), lambda: self.now)

    def posted(self, ride_id: int, metres: str = "12.300") -> None:
        self.customer.posted(ride_id, Decimal(metres))

    def comes(self, ride_id: int, metres: str = "12.300", webhook_id: str = "") -> Reply:
        """A receipt comes again and again until the customer does not put it off any more."""
        while True:
            reply = self.customer.receives(*signed(body(ride_id, metres), webhook_id))
            if reply.status != 503:
                return reply


def body(ride_id: int, metres: str = "12.300") -> bytes:
    return f'{{"type":"ride.receipt","data":{{"ride_id":{ride_id},"distance":{metres}}}}}'.encode()


def signed(
    message: bytes, webhook_id: str = "", secret: str = DEMO_SECRET
) -> tuple[dict[str, str], bytes]:
    now = datetime.now(UTC)
    webhook_id = webhook_id or f"receipt_{json.loads(message)['data']['ride_id']}"
    headers = {
        "webhook-id": webhook_id,
        "webhook-timestamp": f"{int(now.timestamp())}",
        "webhook-signature": Webhook(secret).sign(webhook_id, now, message.decode()),
    }
    return headers, message


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    caplog.set_level(logging.INFO)
    return Scene()


def test_a_receipt_in_time_is_accepted_without_a_word(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.posted(1)
    scene.now += LATE
    assert scene.comes(1).status == 204
    assert scene.comes(2).status == 204  # its ride's answer is still on its way
    scene.posted(2)
    scene.now += MISSING + 1
    scene.customer.look()
    assert not scene.customer.waits
    assert scene.customer.is_content
    assert caplog.messages == []
    assert scene.customer.report().startswith("receipts: 2 accepted")


def test_what_is_late_twice_or_missing_is_said_once(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    for ride_id in (1, 2, 3, 4):
        scene.posted(ride_id)
    scene.now += LATE + 1
    scene.comes(1)
    scene.comes(1)
    scene.now += MISSING - LATE
    scene.customer.look()
    scene.customer.look()
    assert scene.customer.counts["missing"] == 3
    assert not scene.customer.waits
    scene.comes(3)
    assert caplog.messages == [
        f"the receipt of ride 1 came {LATE + 1:.1f} s after the ride",
        "the receipt of ride 1 came again",
        f"3 rides have had no receipt for {MISSING:.0f} s, ride 2 the first",
        f"the receipt of ride 3 came {MISSING + 1:.1f} s after the ride",
    ]
    assert not scene.customer.is_content
    assert scene.customer.report().endswith("2 accepted, 2 late, 2 missing, 1 twice")


FORGERIES = {
    "another's secret": signed(body(1), secret="whsec_" + "QUJD" * 8),
    "changed": (signed(body(1))[0], body(1, "99.9")),
    "no signature": ({}, body(1)),
    "garbage": (signed(body(1))[0] | {"webhook-signature": "garbage"}, body(1)),
    "bad base64": (signed(body(1))[0] | {"webhook-signature": "v1,a"}, body(1)),
    "no text": (signed(body(1))[0], b"\xff"),
    "replayed late": (signed(body(1))[0] | {"webhook-timestamp": "1700000000"}, body(1)),
    "NaN": (signed(body(1))[0] | {"webhook-timestamp": "nan"}, body(1)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_refused_and_said(
    forgery: str, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.posted(1)
    assert scene.customer.receives(*FORGERIES[forgery]).status == 401
    assert scene.customer.counts == {"forged": 1}
    [record] = caplog.records
    assert (record.levelname, record.message[:19]) == ("WARNING", "a receipt is forged")
    assert scene.customer.waits


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"type":"ride.receipt","data":{"ride_id":1,"distance":12.301}}',
        b'{"type":"ride.receipt","data":{"ride_id":1,"distance":"x"}}',
        b'{"type":"ride.receipt","data":{"ride_id":"x","distance":1}}',
        b'{"type":"ride.receipt","data":[1]}',
        b'{"type":"ride.refund","data":{"ride_id":1,"distance":12.3}}',
        b"[]",
        b"{",
    ],
)
def test_a_receipt_with_a_true_signature_may_still_be_wrong(wrong: bytes, scene: Scene) -> None:
    scene.posted(1)
    assert scene.customer.receives(*signed(wrong, "receipt_1")).status == 400
    assert scene.customer.counts == {"wrong": 1}


def test_one_ride_in_two_hundred_is_never_accepted_nor_missed(scene: Scene) -> None:
    scene.posted(NEVER)
    for _ in range(3):
        reply = scene.comes(NEVER)
        assert (reply.status, reply.text) == (422, f"this customer never accepts ride {NEVER}")
    scene.now += MISSING + 1
    scene.customer.look()
    assert scene.customer.is_content


def test_one_in_ten_is_put_off_and_some_are_slow() -> None:
    scene = Scene()
    replies = [
        scene.customer.receives(*signed(body(ride_id)))
        for ride_id in range(1, 4000)
        if ride_id % NEVER
    ]
    put_off = [reply for reply in replies if reply.status == 503]
    assert 0.08 < len(put_off) / len(replies) < 0.12
    assert {reply.headers for reply in put_off} == {(("Retry-After", "1"),)}
    slow = [reply for reply in replies if reply.delay]
    assert 0.01 < len(slow) / len(replies) < 0.03
    assert {reply.status for reply in slow} == {204}


def test_in_a_bad_mood_it_refuses_everything_and_says_when_to_come_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    for ride_id in range(1, 30):
        scene.posted(ride_id)
    scene.customer.begin_bad_mood()
    scene.now += BAD_MOOD - 1.5
    receipts = [signed(body(ride_id)) for ride_id in range(1, 30)]
    for each in [*receipts, *FORGERIES.values(), signed(body(NEVER))]:
        assert scene.customer.receives(*each) == Reply(
            503, "in a bad mood", headers=(("Retry-After", "2"),)
        )
    assert set(scene.customer.counts) == {"put off"}
    scene.now += 1.5
    assert {scene.comes(ride_id).status for ride_id in range(1, 30)} == {204}
    assert not scene.customer.waits
    assert caplog.messages == ["refusing all receipts for 5 s"]


def test_it_remembers_and_says_only_so_much(
    monkeypatch: pytest.MonkeyPatch, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(customer, "MOST", 10)
    for ride_id in range(1, 100):
        scene.posted(ride_id)
        scene.comes(1000 + ride_id)
        scene.comes(1000 + ride_id)
    scene.now += MISSING + 1
    scene.customer.look()
    for name in ("_expected", "_missing", "_accepted", "_unknown"):
        assert len(getattr(scene.customer, name)) <= 10
    assert len(caplog.messages) == customer.MOST_LINES + 1
    scene.customer.report()
    scene.comes(1099)
    assert caplog.messages[-1] == "the receipt of ride 1099 came again"
