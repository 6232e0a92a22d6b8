"""The simulator as the customer: what it accepts, and what it refuses."""

import logging
import random
from datetime import UTC, datetime

import pytest
from aiohttp import web
from standardwebhooks import Webhook

from demo.simulator.customer import NEVER, Customer
from demo.simulator.mood import BAD_MOOD
from rocket_rides.settings import DEMO_SECRET


class Scene:
    """A customer with a clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.customer = Customer(DEMO_SECRET, random.Random(1), lambda: self.now)

    def comes(self, ride_id: int, webhook_id: str = "") -> web.Response:
        """A receipt comes again and again until the customer does not put it off any more."""
        while True:
            reply = self.customer.receives(*signed(body(ride_id), webhook_id))
            if reply.status != 503:
                return reply


def body(ride_id: int) -> bytes:
    return f'{{"type":"ride.receipt","data":{{"ride_id":{ride_id},"distance":12.300}}}}'.encode()


def signed(
    message: bytes, webhook_id: str = "", secret: str = DEMO_SECRET
) -> tuple[dict[str, str], bytes]:
    now = datetime.now(UTC)
    webhook_id = webhook_id or message.decode()
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


def test_a_receipt_is_accepted_once_without_a_word_and_one_that_comes_again_is_said(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    assert [scene.comes(ride_id).status for ride_id in (1, 2)] == [204, 204]
    assert caplog.messages == []
    assert scene.comes(1).status == 204
    assert caplog.messages == ["the receipt of ride 1 came again"]
    assert scene.customer.report().startswith("receipts: 2 accepted")
    assert scene.customer.report().endswith("1 twice")


FORGERIES = {
    "another's secret": signed(body(1), secret="whsec_" + "QUJD" * 8),
    "no signature": ({}, body(1)),
    "bad base64": (signed(body(1))[0] | {"webhook-signature": "v1,a"}, body(1)),
    "no text": (signed(body(1))[0], b"\xff"),
    "NaN": (signed(body(1))[0] | {"webhook-timestamp": "nan"}, body(1)),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_is_refused_and_said(
    forgery: str, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    assert scene.customer.receives(*FORGERIES[forgery]).status == 401
    assert scene.customer.counts == {"forged": 1}
    [record] = caplog.records
    assert (record.levelname, record.message[:19]) == ("WARNING", "a receipt is forged")


def test_one_in_ten_is_put_off() -> None:
    scene = Scene()
    replies = [
        scene.customer.receives(*signed(body(ride_id)))
        for ride_id in range(1, 4000)
        if ride_id % NEVER
    ]
    put_off = [reply for reply in replies if reply.status == 503]
    assert 0.08 < len(put_off) / len(replies) < 0.12
    assert {reply.headers["Retry-After"] for reply in put_off} == {"1"}


def test_in_a_bad_mood_it_refuses_everything_and_says_when_to_come_again(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    scene.customer.begin_bad_mood()
    scene.now += BAD_MOOD - 1.5
    receipts = [signed(body(ride_id)) for ride_id in range(1, 30)]
    for each in [*receipts, *FORGERIES.values(), signed(body(NEVER))]:
        reply = scene.customer.receives(*each)
        assert (reply.status, reply.text) == (503, "in a bad mood")
        assert reply.headers["Retry-After"] == "2"
    assert set(scene.customer.counts) == {"put off"}
    scene.now += 1.5
    assert {scene.comes(ride_id).status for ride_id in range(1, 30)} == {204}
    assert caplog.messages == ["refusing all receipts for 5 s"]
