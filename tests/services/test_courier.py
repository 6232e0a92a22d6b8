"""The courier, delivering to real receivers over HTTP and HTTPS."""

import asyncio
import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
import trustme
from standardwebhooks import Webhook

from consumers.receipts.courier import HALF_A_HEAD, LONGEST_BODY, MOST_READ, Courier
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import NOT_HTTP, Kind, Verdict
from lab.ports import free_ports
from rocket_rides.errors import Refused
from rocket_rides.settings import DEMO_SECRET
from tests.support.receiver import (
    ACCEPT,
    CUT_SHORT,
    DISCONNECT,
    ENDLESS,
    GARBAGE,
    HANG,
    Answer,
    Behaviour,
    Receiver,
    Request,
    redirect,
    refuse,
)
from tests.support.world import eventually

T = TypeVar("T")

LONG = 20.0  # seconds; no test waits for this time-out
SHORT = 0.3  # seconds; for those that do


def receipt(number: int = 1) -> Receipt:
    taken = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
    return Receipt(number, Decimal("539.837"), taken, f"receipt_{number}")


class Round:
    """A courier on an event loop of its own, which runs only while a test waits for something."""

    def __init__(self, url: str, timeout: float = LONG) -> None:
        self._timeout = timeout
        self._runner = asyncio.Runner()
        self._courier = Courier(url, DEMO_SECRET)
        self.run(self._courier.__aenter__())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def one(self, number: int = 1) -> Verdict:
        """The verdict on one receipt."""
        return self.run(self._courier.deliver(receipt(number), self._timeout))

    def several(self, *numbers: int) -> list[Verdict]:
        """The verdicts on these receipts, all sent at once."""

        async def all_of_them() -> list[Verdict]:
            return await asyncio.gather(*(self.begin(number) for number in numbers))

        return self.run(all_of_them())

    def begin(self, number: int) -> "asyncio.Task[Verdict]":
        """Within `run`: an attempt under way."""
        return asyncio.create_task(self._courier.deliver(receipt(number), self._timeout))

    def close(self) -> None:
        with self._runner:
            self.run(self._courier.__aexit__())


Couriers = Callable[..., Round]


@pytest.fixture
def couriers() -> Iterator[Couriers]:
    """Makes couriers, and closes them."""
    with ExitStack() as all_of_them:

        def make(url: str, timeout: float = LONG) -> Round:
            courier = Round(url, timeout)
            all_of_them.callback(courier.close)
            return courier

        yield make


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def answered(couriers: Couriers, answer: Answer, timeout: float = LONG) -> Verdict:
    """The verdict on a receipt to which a receiver answers so."""
    with Receiver(answer) as receiver:
        return couriers(receiver.url, timeout).one()


async def seen(claim: Callable[[], object]) -> None:
    """Wait until it is true."""
    async with asyncio.timeout(LONG):
        while not claim():
            await asyncio.sleep(0.001)


def test_a_receipt_is_one_post_that_the_library_verifies(
    receiver: Receiver, couriers: Couriers
) -> None:
    assert couriers(receiver.url + "?shop=7").one() == Verdict(Kind.DELIVERED, "status 204")
    [request] = receiver.requests
    assert request.path == "/receipts?shop=7"
    assert request.headers["content-type"] == "application/json"
    assert request.headers.keys() == {
        *("host", "user-agent", "accept", "content-length", "content-type"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
    }
    assert request.webhook_id == "receipt_1"
    verified = Webhook(DEMO_SECRET).verify(request.body, request.headers)
    assert verified == json.loads(receipt().body())
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 5


def test_each_attempt_is_signed_with_its_own_time(receiver: Receiver, couriers: Couriers) -> None:
    courier = couriers(receiver.url)
    courier.one()
    begun = int(time.time())
    eventually(lambda: int(time.time()) > begun)
    courier.one()
    first, second = receiver.requests
    assert first.webhook_id == second.webhook_id
    assert first.body == second.body
    assert int(first.headers["webhook-timestamp"]) < int(second.headers["webhook-timestamp"])
    assert first.headers["webhook-signature"] != second.headers["webhook-signature"]
    Webhook(DEMO_SECRET).verify(second.body, second.headers)


def test_the_status_decides_and_the_connection_is_kept(
    receiver: Receiver, couriers: Couriers
) -> None:
    statuses = [200, 202, 408, 425, 429, 500, 503, 301, 400, 410, 422]
    courier = couriers(receiver.url)
    kinds = []
    for status in statuses:
        receiver.behaviour = Answer(status, body=f"it is\r\n {status}\x00".encode())
        verdict = courier.one()
        kinds.append(verdict.kind)
        assert verdict.reason.startswith(f"status {status}")
        assert verdict.kind is Kind.DELIVERED or verdict.reason.endswith(f": it is {status}")
    assert kinds == [Kind.DELIVERED] * 2 + [Kind.RETRY] * 5 + [Kind.REFUSED] * 4
    assert receiver.connections == 1


def test_a_redirect_is_a_refusal_that_nobody_follows(
    receiver: Receiver, couriers: Couriers
) -> None:
    with Receiver() as elsewhere:
        courier = couriers(receiver.url)
        for target in (elsewhere.url, "?x", "http://[bad"):
            receiver.behaviour = redirect(target)
            assert courier.one() == Verdict(Kind.REFUSED, f"status 302 to {target}")
        assert elsewhere.connections == 0


def test_the_receiver_may_say_when_to_try_again(receiver: Receiver, couriers: Couriers) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=100)
    courier = couriers(receiver.url)
    asked: dict[str, float | None] = {}
    dates = (format_datetime(soon, usegmt=True), "Thu, 01 Jan 1970 00:00:00 GMT")
    for value in ("7", "999999", "0", "-7", "1.5e3", "soon", *dates):
        receiver.behaviour = refuse(503, Retry_After=value)
        asked[value] = courier.one().retry_after
    assert asked.pop("7") == 7
    assert asked.pop("999999") == 300
    assert 90 < (asked.pop(dates[0]) or 0) <= 100
    assert all(seconds is None or 0 < seconds <= 300 for seconds in asked.values()), asked
    assert [asked[value] for value in ("0", "-7", "soon", dates[1])] == [None] * 4


def test_who_hangs_is_given_up_in_time_and_holds_up_nobody(
    receiver: Receiver, couriers: Couriers
) -> None:
    receiver.behaviour = lambda request: HANG if request.ride_id == 1 else ACCEPT
    began = time.monotonic()
    hung, *others = couriers(receiver.url, SHORT).several(*range(1, 51))
    assert SHORT <= time.monotonic() - began < SHORT + 2
    assert hung == Verdict(Kind.RETRY, f"timed out after {SHORT} s")
    assert {verdict.kind for verdict in others} == {Kind.DELIVERED}


def test_an_answer_that_came_while_nobody_looked_counts(
    receiver: Receiver, couriers: Couriers
) -> None:
    """Time-outs are for those who have not answered, however late the look."""
    courier = couriers(receiver.url, SHORT)

    async def looking_late() -> Verdict:
        under_way = courier.begin(1)
        await seen(lambda: receiver.requests)
        late = time.monotonic() + SHORT + 0.2
        eventually(lambda: time.monotonic() > late)  # in which the event loop stands still
        return await under_way

    receiver.behaviour = Answer(delay=SHORT / 3)
    assert courier.run(looking_late()).kind is Kind.DELIVERED


def test_nothing_is_sent_by_who_stood_still_while_it_connected(
    receiver: Receiver, couriers: Couriers
) -> None:
    """Others may have the receipt by then."""
    courier = couriers(receiver.url, SHORT)

    async def standing_still() -> Verdict:
        attempt = courier.begin(1)
        for _ in range(3):
            await asyncio.sleep(0)
        late = time.monotonic() + SHORT + 0.2
        eventually(lambda: time.monotonic() > late)
        return await attempt

    assert courier.run(standing_still()).kind is Kind.AWAY
    assert receiver.requests == []


@pytest.mark.parametrize(
    "head", [b"", b"HT", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_a_head_that_does_not_end_is_no_answer(head: bytes, couriers: Couriers) -> None:
    assert answered(couriers, Answer(raw=head), SHORT).kind is Kind.RETRY


def test_a_head_without_bounds_is_no_answer(couriers: Couriers) -> None:
    for line in (b"x: " + b"y" * 2_000_000, b"x: y\r\n" * 200_000):
        verdict = answered(couriers, Answer(raw=b"HTTP/1.1 200 OK\r\n" + line))
        assert verdict == Verdict(Kind.RETRY, NOT_HTTP)


def test_a_head_may_have_a_long_line(couriers: Couriers) -> None:
    assert answered(couriers, Answer(200, {"X": "y" * 30_000})).kind is Kind.DELIVERED


def test_garbage_and_a_lost_connection_are_to_be_tried_again(couriers: Couriers) -> None:
    assert answered(couriers, GARBAGE) == Verdict(Kind.RETRY, NOT_HTTP)
    assert answered(couriers, DISCONNECT) == Verdict(Kind.RETRY, "Server disconnected")
    for head in (b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\nA: b\r\n"):
        verdict = answered(couriers, Answer(raw=head, closes=True))
        assert verdict == Verdict(Kind.RETRY, HALF_A_HEAD)
    assert answered(couriers, Answer(raw=b"HTTP/1.1 OK\r\n\r\n", closes=True)).kind is Kind.RETRY
    early = Answer(raw=b"HTTP/1.1 103 Early\r\n\r\n", closes=True)
    assert answered(couriers, early).kind is Kind.RETRY


def test_headers_that_mean_nothing_change_nothing(receiver: Receiver, couriers: Couriers) -> None:
    courier = couriers(receiver.url)
    for headers in (
        {"Retry-After": "\xb2"},
        {"Retry-After": "Fri, 01 Jan 2027 00:00:00 +999999999999999999999"},
        {"Retry-After": "Fri, 32 Jan 99999 00:00:00 GMT"},
        {"Location": "//[bad"},
        {"Content-Encoding": "gzip"},
        {"Content-Type": "text/plain; charset=none-such"},
        {"Set-Cookie": "=;;=\xff"},
    ):
        receiver.behaviour = Answer(503, headers, b"no gzip")
        assert courier.one() == Verdict(Kind.RETRY, "status 503: no gzip"), headers


def test_what_follows_the_head_changes_nothing(couriers: Couriers) -> None:
    began = time.monotonic()
    assert answered(couriers, ENDLESS).kind is Kind.DELIVERED
    assert answered(couriers, Answer(503, endless=True)).kind is Kind.RETRY
    assert answered(couriers, Answer(404, endless=True)).kind is Kind.REFUSED
    assert answered(couriers, CUT_SHORT).kind is Kind.DELIVERED
    bare = Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", closes=True)
    assert answered(couriers, bare).kind is Kind.DELIVERED
    large = Answer(404, body=b"a" * 10_000_000)
    assert answered(couriers, large).reason == f"status 404: {'a' * 188}"
    assert time.monotonic() - began < LONG / 2


def test_what_breaks_http_in_the_same_bytes_as_the_head_is_no_answer(couriers: Couriers) -> None:
    for rest in (b"204 No\r\n\r\njunk", b"404 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        verdict = answered(couriers, Answer(raw=b"HTTP/1.1 " + rest))
        assert verdict == Verdict(Kind.RETRY, NOT_HTTP)


def test_a_body_that_does_not_end_changes_nothing_even_if_the_time_is_over(
    receiver: Receiver, couriers: Couriers
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf"
    receiver.behaviour = Answer(raw=head)
    courier = couriers(receiver.url, LONGEST_BODY / 2)
    began = time.monotonic()
    assert courier.one().kind is Kind.DELIVERED
    assert time.monotonic() - began < LONG / 2
    # Nor does what is left of it become the next answer.
    receiver.behaviour = ACCEPT
    assert courier.one().kind is Kind.DELIVERED
    assert receiver.connections == 2


def test_a_connection_is_kept_when_the_page_on_it_was_read(
    receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url)
    for length, connections in ((MOST_READ // 2, 1), (MOST_READ // 2, 1), (10_000_000, 1), (1, 2)):
        receiver.behaviour = Answer(502, body=b"a" * length)
        courier.one()
        assert receiver.connections == connections


def test_a_receiver_that_cannot_be_reached_is_away(couriers: Couriers) -> None:
    reasons = {
        f"http://127.0.0.1:{free_ports()}/": "no connection: Connection refused",
        "http://[::1]:1/": "no connection: Connection refused",
        "http://receiver.invalid/": "no connection: ",
        "http://a..b/": "encoding with 'idna' codec failed",
    }
    for url, reason in reasons.items():
        verdict = couriers(url).one()
        assert verdict.kind is Kind.AWAY, (url, verdict)
        assert verdict.reason.startswith(reason)
        assert len(verdict.reason) > len("no connection: ")
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        with socket.create_connection(address):  # the only place in the queue
            verdict = couriers(f"http://127.0.0.1:{address[1]}/", SHORT).one()
    assert verdict == Verdict(Kind.AWAY, f"timed out after {SHORT} s")


def test_a_receiver_that_was_restarted_is_reached_at_once(
    receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url)
    eight = range(1, 9)
    courier.several(*eight)
    assert receiver.connections == 8
    receiver.goes_away()
    receiver.comes_back()
    # None of these looked first whether its connection is dead.
    assert {verdict.kind for verdict in courier.several(*eight)} == {Kind.DELIVERED}
    receiver.goes_away()
    courier.run(asyncio.sleep(0))  # to notice it
    assert {verdict.kind for verdict in courier.several(*eight)} == {Kind.AWAY}
    receiver.comes_back()
    assert {verdict.kind for verdict in courier.several(*eight)} == {Kind.DELIVERED}


def dying(receiver: Receiver, answer: Answer) -> Behaviour:
    """Answer so, but 204 to what is the first request on its connection."""
    known = 0

    def behave(_: Request) -> Answer:
        nonlocal known
        known, before = receiver.connections, known
        return ACCEPT if known > before else answer

    return behave


def test_a_kept_connection_that_dies_before_it_answers_is_replaced_once(
    receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url)
    receiver.behaviour = dying(receiver, DISCONNECT)
    assert [courier.one().kind for _ in range(3)] == [Kind.DELIVERED] * 3
    assert len(receiver.requests) == 1 + 2 * 2
    # A receipt that kills whoever takes it is sent twice, and no more.
    receiver.behaviour = DISCONNECT
    assert courier.one().kind is Kind.RETRY
    assert len(receiver.requests) == 1 + 2 * 2 + 2
    # And once on a connection that is new.
    assert courier.one().kind is Kind.RETRY
    assert len(receiver.requests) == 1 + 2 * 2 + 2 + 1


def test_what_was_sent_on_a_connection_that_died_may_have_come(
    receiver: Receiver, couriers: Couriers
) -> None:
    """Even if nobody is there any more, to whom it could be sent again."""
    courier = couriers(receiver.url)
    courier.one()

    def goes_away(_: Request) -> Answer:
        asyncio.get_running_loop().call_soon(receiver.refuses_connections)
        return DISCONNECT

    receiver.behaviour = goes_away
    assert courier.one().kind is Kind.RETRY
    assert courier.one().kind is Kind.AWAY


@pytest.mark.parametrize(
    "answer", [GARBAGE, Answer(raw=b"HTTP/1.1 20", closes=True), HANG, refuse(503)]
)
def test_what_was_answered_on_a_kept_connection_is_not_sent_again(
    answer: Answer, receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url, SHORT)
    receiver.behaviour = dying(receiver, answer)
    assert [courier.one().kind for _ in range(2)] == [Kind.DELIVERED, Kind.RETRY]
    assert len(receiver.requests) == 2


def test_connections_are_kept(receiver: Receiver, couriers: Couriers) -> None:
    courier = couriers(receiver.url)
    receiver.behaviour = Answer(delay=0.005)
    for first in range(1, 201, 4):
        verdicts = courier.several(*range(first, first + 4))
        assert {verdict.kind for verdict in verdicts} == {Kind.DELIVERED}
    assert sum(receiver.rides.values()) == len(receiver.rides) == 200
    assert receiver.connections == 4


def test_nothing_but_the_url_says_where_to_and_as_whom(
    receiver: Receiver, couriers: Couriers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    receiver.behaviour = Answer(200, {"Set-Cookie": "a=b"})
    with Receiver() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        courier = couriers(receiver.url)
        courier.one()
        courier.one()
        assert proxy.connections == 0
    assert len(receiver.requests) == 2
    for request in receiver.requests:
        assert not {"authorization", "cookie", "proxy-authorization"} & request.headers.keys()


def test_the_connection_of_what_is_cancelled_is_closed(
    receiver: Receiver, couriers: Couriers
) -> None:
    receiver.behaviour = HANG
    courier = couriers(receiver.url)

    async def cancelled() -> None:
        under_way = [courier.begin(number) for number in range(1, 6)]
        await seen(lambda: len(receiver.requests) == 5)
        for attempt in under_way:
            attempt.cancel()
        await seen(lambda: receiver.in_hand == 0)

    courier.run(cancelled())
    receiver.behaviour = ACCEPT
    assert courier.one().kind is Kind.DELIVERED


def test_a_closed_courier_leaves_no_socket_open(receiver: Receiver) -> None:
    before = len(os.listdir("/proc/self/fd"))
    courier = Round(receiver.url)
    courier.several(*range(1, 9))
    receiver.behaviour = HANG

    async def under_way() -> None:
        courier.begin(1)
        await seen(lambda: len(receiver.requests) == 9)

    courier.run(under_way())
    courier.close()
    eventually(lambda: receiver.in_hand == 0)
    eventually(lambda: len(os.listdir("/proc/self/fd")) == before)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def certified(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def test_https_is_verified(
    authority: trustme.CA, couriers: Couriers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with Receiver(tls=certified(authority, "127.0.0.1")) as receiver:
        stranger = couriers(receiver.url).one()
        assert stranger.kind is Kind.AWAY
        assert "certificate verify failed" in stranger.reason
        known = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(known))
        monkeypatch.setenv("SSL_CERT_FILE", str(known))
        courier, before = couriers(receiver.url), receiver.connections
        assert [courier.one().kind for _ in range(10)] == [Kind.DELIVERED] * 10
        assert receiver.connections == before + 1
    with Receiver(tls=certified(authority, "another.example")) as another:
        misnamed = couriers(another.url).one()
        assert misnamed.kind is Kind.AWAY
        assert "127.0.0.1" in misnamed.reason
        assert another.requests == []


def test_who_can_check_no_certificate_refuses_to_work_unless_there_is_none(
    receiver: Receiver, couriers: Couriers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nowhere, nothing = tmp_path / "nowhere.pem", tmp_path / "nothing.pem"
    nothing.write_text("")
    for file, why in ((nowhere, "No such file"), (nothing, "no certificate")):
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with pytest.raises(Refused, match=rf"^SSL_CERT_FILE is {file}: .*{why}"):
            couriers(receiver.url.replace("http:", "https:"))
        assert couriers(receiver.url).one().kind is Kind.DELIVERED


def test_https_to_a_receiver_without_tls_is_away(receiver: Receiver, couriers: Couriers) -> None:
    url = receiver.url.replace("http:", "https:")
    assert couriers(url, SHORT).one().kind is Kind.AWAY
    assert receiver.requests == []
