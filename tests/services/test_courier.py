"""The courier, delivering to real receivers over HTTP and HTTPS."""

import json
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path

import pytest
import trustme
from standardwebhooks import Webhook

from consumers.receipts.courier import Courier, Kind, Verdict
from consumers.receipts.receipt import Receipt
from lab.ports import free_ports
from rocket_rides.settings import DEMO_SECRET
from tests.support.receiver import (
    ACCEPT,
    CUT_SHORT,
    DISCONNECT,
    ENDLESS,
    GARBAGE,
    HANG,
    Answer,
    Receiver,
    Request,
    redirect,
    refuse,
)
from tests.support.world import eventually

LONG = 20.0  # seconds; no test waits for this time-out
SHORT = 0.3  # seconds; for those that do

Couriers = Callable[..., Courier]


def receipt(number: int = 1) -> Receipt:
    taken = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)
    return Receipt(number, Decimal("539.837"), taken, f"receipt_{number}")


@pytest.fixture
def couriers() -> Iterator[Couriers]:
    """Makes couriers, and closes them."""
    with ExitStack() as all_of_them:

        def make(url: str, concurrency: int = 8, timeout: float = LONG) -> Courier:
            return all_of_them.enter_context(Courier(url, DEMO_SECRET, concurrency, timeout))

        yield make


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


def deliver(courier: Courier, count: int = 1) -> list[Verdict]:
    """Deliver this many receipts, at once if there is room; the verdicts, by number."""
    verdicts: dict[int, Verdict] = {}
    waiting = [receipt(number) for number in range(count, 0, -1)]
    while len(verdicts) < count:
        while waiting and courier.room:
            courier.start(waiting.pop())
        verdicts |= {of.ride_id: verdict for of, verdict in courier.finished(LONG)}
    return [verdict for _, verdict in sorted(verdicts.items())]


def answered(couriers: Couriers, answer: Answer, timeout: float = LONG) -> Verdict:
    """The verdict on a receipt to which a receiver answers so."""
    with Receiver(answer) as receiver:
        [verdict] = deliver(couriers(receiver.url, timeout=timeout))
        return verdict


def test_a_receipt_is_one_post_that_the_library_verifies(
    receiver: Receiver, couriers: Couriers
) -> None:
    assert deliver(couriers(receiver.url + "?shop=7")) == [Verdict(Kind.DELIVERED, "status 204")]
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
    deliver(courier)
    begun = int(time.time())
    eventually(lambda: int(time.time()) > begun)
    deliver(courier)
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
        [verdict] = deliver(courier)
        kinds.append(verdict.kind)
        assert verdict.reason.startswith(f"status {status}")
        assert verdict.kind is Kind.DELIVERED or verdict.reason.endswith(f": it is {status}")
    assert kinds == [Kind.DELIVERED] * 2 + [Kind.RETRY] * 5 + [Kind.REFUSED] * 4
    assert receiver.connections == 1


def test_a_redirect_is_a_refusal_that_nobody_follows(
    receiver: Receiver, couriers: Couriers
) -> None:
    with Receiver() as elsewhere:
        receiver.behaviour = redirect(elsewhere.url)
        [verdict] = deliver(couriers(receiver.url))
        assert verdict == Verdict(Kind.REFUSED, f"status 302 to {elsewhere.url}")
        assert elsewhere.connections == 0


def test_the_receiver_may_say_when_to_try_again(receiver: Receiver, couriers: Couriers) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=100)
    courier = couriers(receiver.url)
    asked: dict[str, float | None] = {}
    dates = (format_datetime(soon, usegmt=True), "Thu, 01 Jan 1970 00:00:00 GMT")
    for value in ("7", "999999", "0", "-7", "1.5e3", "soon", *dates):
        receiver.behaviour = refuse(503, Retry_After=value)
        [verdict] = deliver(courier)
        asked[value] = verdict.retry_after
    assert asked.pop("7") == 7
    assert asked.pop("999999") == 300
    assert 90 < (asked.pop(dates[0]) or 0) <= 100
    assert all(seconds is None or 0 < seconds <= 300 for seconds in asked.values()), asked
    assert [asked[value] for value in ("0", "-7", "soon", dates[1])] == [None] * 4


def test_who_hangs_is_given_up_in_time_and_holds_up_nobody(
    receiver: Receiver, couriers: Couriers
) -> None:
    def hang_once(request: Request) -> Answer:
        return HANG if request.ride_id == 1 else ACCEPT

    receiver.behaviour = hang_once
    began = time.monotonic()
    hung, *others = deliver(couriers(receiver.url, concurrency=2, timeout=SHORT), 50)
    assert SHORT <= time.monotonic() - began < SHORT + 2
    assert hung.kind is Kind.RETRY
    assert "timed out" in hung.reason
    assert {verdict.kind for verdict in others} == {Kind.DELIVERED}


def test_an_answer_that_came_while_nobody_looked_counts(
    receiver: Receiver, couriers: Couriers
) -> None:
    """Time-outs are for those who have not answered, however late the look."""
    receiver.behaviour = Answer(delay=SHORT / 3)
    courier = couriers(receiver.url, timeout=SHORT)
    ended = []
    for number in range(3):
        courier.start(receipt(number))
    while len(receiver.requests) < 3:
        ended += courier.finished(0.01)
    late = time.monotonic() + SHORT + 0.2
    eventually(lambda: time.monotonic() > late)
    while len(ended) < 3:
        ended += courier.finished(LONG)
    assert [verdict.kind for _, verdict in ended] == [Kind.DELIVERED] * 3


@pytest.mark.parametrize(
    "head", [b"", b"HT", b"HTTP/1.1 200 OK\r\nContent-", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_a_head_that_does_not_end_is_no_answer(head: bytes, couriers: Couriers) -> None:
    assert answered(couriers, Answer(raw=head), SHORT).kind is Kind.RETRY


def test_a_head_without_bounds_is_no_answer(couriers: Couriers) -> None:
    for line in (b"x: " + b"y" * 2_000_000, b"x: y\r\n" * 200_000):
        verdict = answered(couriers, Answer(raw=b"HTTP/1.1 200 OK\r\n" + line))
        assert verdict.kind is Kind.RETRY


def test_garbage_and_a_lost_connection_are_to_be_tried_again(couriers: Couriers) -> None:
    assert answered(couriers, GARBAGE) == Verdict(Kind.RETRY, "the answer is not HTTP")
    assert answered(couriers, DISCONNECT).kind is Kind.RETRY
    assert answered(couriers, Answer(raw=b"HTTP/1.1 200", closes=True)).kind is Kind.RETRY
    assert answered(couriers, Answer(raw=b"HTTP/1.1 OK\r\n\r\n", closes=True)).kind is Kind.RETRY
    early = Answer(raw=b"HTTP/1.1 103 Early\r\n\r\n", closes=True)
    assert answered(couriers, early).kind is Kind.RETRY


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
    unfinished = Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf")
    assert answered(couriers, unfinished, SHORT).kind is Kind.DELIVERED
    wrong = Answer(raw=b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhallo\r\nzz\r\n")
    assert answered(couriers, wrong, SHORT).kind is Kind.REFUSED
    assert time.monotonic() - began < LONG / 2


def test_a_receiver_that_cannot_be_reached_is_away(couriers: Couriers) -> None:
    for url in (f"http://127.0.0.1:{free_ports()}/", "http://receiver.invalid/", "http://[::1]:1/"):
        [verdict] = deliver(couriers(url))
        assert verdict.kind is Kind.AWAY, (url, verdict)
        assert len(verdict.reason) > 10
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        address = full.getsockname()
        with socket.create_connection(address):  # the only place in the queue
            [verdict] = deliver(couriers(f"http://127.0.0.1:{address[1]}/", timeout=SHORT))
    assert verdict.kind is Kind.AWAY
    assert "timed out" in verdict.reason


def test_a_receiver_that_was_restarted_is_reached_at_once(
    receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url)
    deliver(courier, 8)
    receiver.goes_away()
    receiver.comes_back()
    assert {verdict.kind for verdict in deliver(courier, 8)} == {Kind.DELIVERED}
    receiver.goes_away()
    assert {verdict.kind for verdict in deliver(courier, 8)} == {Kind.AWAY}
    receiver.comes_back()
    assert {verdict.kind for verdict in deliver(courier, 8)} == {Kind.DELIVERED}


def test_there_are_never_more_at_once_than_asked_and_connections_are_kept(
    receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url, concurrency=4)
    assert courier.room == 4
    receiver.behaviour = Answer(delay=0.005)
    verdicts = deliver(courier, 200)
    assert {verdict.kind for verdict in verdicts} == {Kind.DELIVERED}
    assert sum(receiver.rides.values()) == len(receiver.rides) == 200
    assert receiver.connections == 4
    assert courier.room == 4


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
        deliver(courier)
        deliver(courier)
        assert proxy.connections == 0
    assert len(receiver.requests) == 2
    for request in receiver.requests:
        assert not {"authorization", "cookie", "proxy-authorization"} & request.headers.keys()


def test_what_is_cancelled_is_told_and_its_connection_closed(
    receiver: Receiver, couriers: Couriers
) -> None:
    receiver.behaviour = HANG
    courier = couriers(receiver.url)
    given = [receipt(number) for number in range(1, 6)]
    for each in given:
        courier.start(each)
    eventually(lambda: courier.finished(0.01) or len(receiver.requests) == 5)
    assert courier.room == 3
    assert courier.cancel() == given
    assert courier.room == 8
    assert courier.finished(0) == []
    eventually(lambda: receiver.in_hand == 0)
    receiver.behaviour = ACCEPT
    assert {verdict.kind for verdict in deliver(courier, 8)} == {Kind.DELIVERED}


def test_waiting_ends_with_the_first_or_in_time_or_when_woken(
    receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url)
    began = time.monotonic()
    assert courier.finished(0.1) == []
    assert 0.09 < time.monotonic() - began < 1
    receiver.behaviour = HANG
    courier.start(receipt(1))
    reader, writer = os.pipe()
    try:
        os.write(writer, b"!")
        assert courier.finished(LONG, reader) == []
        assert courier.finished(LONG, reader) == []
    finally:
        os.close(reader)
        os.close(writer)
    eventually(lambda: courier.finished(0.01) or receiver.requests)
    receiver.behaviour = ACCEPT
    courier.start(receipt(2))
    assert [of.ride_id for of, _ in courier.finished(LONG)] == [2]
    assert time.monotonic() - began < LONG / 2


def test_a_closed_courier_leaves_no_socket_open(receiver: Receiver) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with Courier(receiver.url, DEMO_SECRET, 8, LONG) as courier:
        deliver(courier, 8)
        receiver.behaviour = HANG
        courier.start(receipt())
        courier.finished(0.01)
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
        [stranger] = deliver(couriers(receiver.url))
        assert stranger.kind is Kind.AWAY
        assert "certificate" in stranger.reason
        known = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(known))
        monkeypatch.setenv("SSL_CERT_FILE", str(known))
        verdicts = deliver(couriers(receiver.url, concurrency=2), 20)
        assert {verdict.kind for verdict in verdicts} == {Kind.DELIVERED}
        assert receiver.connections <= 3
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nowhere.pem"))
        [ours] = deliver(couriers(receiver.url))
        assert ours.kind is Kind.AWAY
    monkeypatch.setenv("SSL_CERT_FILE", str(known))
    with Receiver(tls=certified(authority, "another.example")) as another:
        [misnamed] = deliver(couriers(another.url))
        assert misnamed.kind is Kind.AWAY
        assert another.requests == []


def test_https_to_a_receiver_without_tls_is_away(receiver: Receiver, couriers: Couriers) -> None:
    url = receiver.url.replace("http:", "https:")
    [verdict] = deliver(couriers(url, timeout=SHORT))
    assert verdict.kind is Kind.AWAY
    assert receiver.requests == []
