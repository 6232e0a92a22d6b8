"""The courier, delivering to real receivers over HTTP and HTTPS."""

import json
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
import trustme
from jsonschema import validate
from standardwebhooks import Webhook

from api.views import DESCRIPTION
from consumers.receipts.connections import OLDEST
from consumers.receipts.courier import LONGEST_BODY, LOST
from consumers.receipts.interim import MOST
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import NOT_HTTP, Kind, Verdict
from lab.ports import free_ports
from tests.support.couriers import LONG, SECRETS, SHORT, Couriers, receipt
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
    refuse,
)
from tests.support.world import eventually
from unified_log.errors import Refused


@pytest.fixture
def couriers() -> Iterator[Couriers]:
    with ExitStack() as closing:
        yield Couriers(closing)


@pytest.mark.parametrize("kept", [0, 1])
def test_nothing_is_sent_after_the_deadline_by_a_worker_that_has_hung(
    kept: int, receiver: Receiver, couriers: Couriers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else two send at once: its lease has run out, and another one has taken the receipt."""
    deliver = couriers(receiver.url)
    before = [deliver(1)[0].kind for _ in range(kept)]
    body = Receipt.body

    def late(of: Receipt) -> bytes:
        time.sleep(SHORT + 0.1)
        return body(of)

    monkeypatch.setattr(Receipt, "body", late)
    [verdict] = deliver(2, seconds=SHORT)
    assert [*before, verdict.kind] == [Kind.DELIVERED] * kept + [Kind.AWAY]
    assert [request.ride_id for request in receiver.requests] == [1] * kept


def test_a_receipt_is_one_post_that_the_library_verifies_by_the_new_secret_and_by_the_old(
    receiver: Receiver, couriers: Couriers
) -> None:
    assert couriers(receiver.url + "?shop=7")() == [Verdict(Kind.DELIVERED, "status 204")]
    [request] = receiver.requests
    assert request.path == "/receipts?shop=7"
    assert request.headers.keys() == {
        *("host", "user-agent", "accept", "content-length", "content-type"),
        *("webhook-id", "webhook-timestamp", "webhook-signature"),
    }
    for secret in SECRETS:
        verified = Webhook(secret).verify(request.body, request.headers)
        assert verified == json.loads(receipt().body())
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 5
    described = json.loads(DESCRIPTION)["webhooks"]["ride.receipt"]["post"]
    for header in described["parameters"]:
        assert header["name"] in request.headers or not header.get("required")
        if value := request.headers.get(header["name"]):
            validate(value, header["schema"])
    assert request.headers["content-type"] in described["requestBody"]["content"]


def test_the_status_decides_and_the_connection_is_kept(
    receiver: Receiver, couriers: Couriers
) -> None:
    statuses = [200, 202, 408, 425, 429, 500, 503, 410, 301, 400, 422]
    courier = couriers(receiver.url)
    kinds = []
    for status in statuses:
        told = f"it is\r\n {status}\x00".encode()
        receiver.behaviour = Answer(status, {"Retry-After": "7"}, told)
        [verdict] = courier()
        kinds.append(verdict.kind)
        assert verdict.retry_after == (7 if verdict.kind is Kind.RETRY else 0)
        assert verdict.reason.startswith(f"status {status}")
        assert verdict.kind is Kind.DELIVERED or verdict.reason.endswith(f": it is {status}")
    assert kinds == [Kind.DELIVERED] * 2 + [Kind.RETRY] * 5 + [Kind.REFUSED] + [Kind.DECLINED] * 3
    assert receiver.connections == 1


def test_a_redirect_is_declined_and_nobody_follows_it(
    receiver: Receiver, couriers: Couriers
) -> None:
    with Receiver() as elsewhere:
        for target in (elsewhere.url, "?x", "http://[bad"):
            receiver.behaviour = Answer(302, {"Location": target})
            assert couriers(receiver.url)() == [Verdict(Kind.DECLINED, "status 302")]
        assert elsewhere.connections == 0


def test_who_hangs_is_given_up_in_time_and_holds_up_nobody(
    receiver: Receiver, couriers: Couriers
) -> None:
    receiver.behaviour = lambda request: HANG if request.ride_id == 1 else ACCEPT
    deliver = couriers(receiver.url)
    began = time.monotonic()
    given_up = [Verdict(Kind.RETRY, f"timed out after {SHORT} s")]
    eventually(lambda: deliver(1, seconds=SHORT) == given_up)  # unless it was not even sent
    assert SHORT <= time.monotonic() - began < LONG
    receiver.requests.clear()
    others = deliver(*range(1, 52), beside=receiver)
    assert [verdict.kind for verdict in others] == [Kind.DELIVERED] * 50


OK, EARLY_HINTS = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n"
# What a receiver does, and the kind and the reason of the verdict, or the latter's beginning.
ANSWERS: dict[str, tuple[Answer, Kind, str]] = {
    "garbage": (GARBAGE, Kind.RETRY, NOT_HTTP),
    "nothing": (DISCONNECT, Kind.RETRY, LOST),
    "half a first line": (Answer(raw=b"HTTP/1.1 200", closes=True), Kind.RETRY, LOST),
    "half a head": (Answer(raw=OK + b"A: b\r\n", closes=True), Kind.RETRY, LOST),
    "half a head, and it hangs": (Answer(raw=OK + b"Content-"), Kind.RETRY, "timed out"),
    "an endless line": (Answer(raw=OK + b"x: " + b"y" * 2_000_000), Kind.RETRY, NOT_HTTP),
    "junk with its head": (Answer(raw=b"HTTP/1.1 204 No\r\n\r\njunk"), Kind.RETRY, NOT_HTTP),
    "a few interim answers": (
        Answer(raw=EARLY_HINTS * MOST + OK + b"Content-Length: 0\r\n\r\n"),
        Kind.DELIVERED,
        "status 200",
    ),
    "interim answers alone": (
        Answer(raw=EARLY_HINTS * 100_000),
        Kind.RETRY,
        "more than 20 interim",
    ),
    "a long header": (Answer(200, {"a": "b" * 30_000}), Kind.DELIVERED, "status 200"),
    "an endless body": (ENDLESS, Kind.DELIVERED, "status 200"),
    "half a body": (CUT_SHORT, Kind.DELIVERED, "status 200"),
    "a large body": (Answer(404, body=b"a" * 10**7), Kind.DECLINED, f"status 404: {'a' * 188}"),
    "a false encoding": (
        Answer(503, {"Content-Encoding": "gzip"}, b"no gzip"),
        Kind.RETRY,
        "status 503: no gzip",
    ),
    "headers that mean nothing": (
        Answer(410, {"Retry-After": "\xb2", "Location": "//[bad", "Set-Cookie": "=;;=\xff"}),
        Kind.REFUSED,
        "status 410",
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_each_answer_has_its_meaning(answer: str, receiver: Receiver, couriers: Couriers) -> None:
    receiver.behaviour, kind, reason = ANSWERS[answer]
    seconds = LONGEST_BODY * 4 if reason == "timed out" else LONG
    [verdict] = couriers(receiver.url)(seconds=seconds)
    assert verdict.kind is kind, verdict
    assert verdict.reason.startswith(reason)


def test_a_body_that_does_not_end_changes_nothing_even_if_the_time_is_over(
    receiver: Receiver, couriers: Couriers
) -> None:
    receiver.behaviour = Answer(raw=OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhalf")
    courier = couriers(receiver.url)
    began = time.monotonic()

    def is_delivered() -> bool:
        """Unless already the head has come too late."""
        return courier(seconds=LONGEST_BODY / 2)[0].kind is Kind.DELIVERED

    eventually(is_delivered)
    assert time.monotonic() - began < LONG / 2
    before = receiver.connections
    # Nor does what is left of it become the next answer.
    receiver.behaviour = ACCEPT
    assert courier()[0].kind is Kind.DELIVERED
    assert receiver.connections == before + 1


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
    """So it costs no attempt that the receiver closed it, or was restarted."""
    courier = couriers(receiver.url)
    receiver.behaviour = dying(receiver, DISCONNECT)
    assert [courier()[0].kind for _ in range(3)] == [Kind.DELIVERED] * 3
    assert len(receiver.requests) == 1 + 2 * 2
    receiver.goes_away()
    receiver.comes_back()
    receiver.behaviour = ACCEPT
    assert courier()[0].kind is Kind.DELIVERED
    # A receipt that kills whoever takes it is sent twice, and once on a connection that is new.
    receiver.behaviour = DISCONNECT
    before = len(receiver.requests)
    assert [courier()[0].kind for _ in range(2)] == [Kind.RETRY] * 2
    assert len(receiver.requests) == before + 2 + 1


@pytest.mark.parametrize("answer", [Answer(raw=b"HTTP/1.1 20", closes=True), refuse(503)])
def test_what_was_answered_on_a_kept_connection_is_not_sent_again(
    answer: Answer, receiver: Receiver, couriers: Couriers
) -> None:
    courier = couriers(receiver.url)
    receiver.behaviour = dying(receiver, answer)
    assert [courier()[0].kind for _ in range(2)] == [Kind.DELIVERED, Kind.RETRY]
    assert len(receiver.requests) == 2


def test_a_receiver_that_moves_is_followed_though_the_old_one_goes_on(
    receiver: Receiver, couriers: Couriers
) -> None:
    """As when its name has another address: the connections to the old one are never idle."""
    now = 0.0
    deliver = couriers(receiver.url, lambda: now)
    deliver(1)
    receiver.moves_away()
    with Receiver(port=receiver.port) as moved:
        deliver(2)
        now += OLDEST
        assert [deliver(ride)[0].kind for ride in (3, 4)] == [Kind.DELIVERED] * 2
        assert [*receiver.rides, *moved.rides] == [1, 2, 3, 4]
        assert moved.connections == 1
    eventually(lambda: receiver.open_connections == 0)


def test_what_is_under_way_on_old_connections_ends_there_and_they_are_closed(
    receiver: Receiver, couriers: Couriers
) -> None:
    ages = count(0, OLDEST)
    receiver.behaviour = Answer(delay=0.05)
    deliver = couriers(receiver.url, lambda: next(ages))  # they grow old with each attempt
    assert [verdict.kind for verdict in deliver(*range(1, 51))] == [Kind.DELIVERED] * 50
    assert receiver.rides == dict.fromkeys(range(1, 51), 1)
    assert receiver.connections == 50
    eventually(lambda: receiver.open_connections == 1)


def test_a_receiver_that_cannot_be_reached_is_away(receiver: Receiver, couriers: Couriers) -> None:
    for url in (
        f"http://127.0.0.1:{free_ports()}/",
        "http://receiver.invalid/",
        "http://a..b/",
        receiver.url.replace("http:", "https:"),  # where nobody speaks TLS
    ):
        [verdict] = couriers(url)(seconds=1)
        assert verdict.kind is Kind.AWAY, (url, verdict)
        assert verdict.reason
    assert receiver.requests == []


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
        courier()
        courier()
        assert proxy.connections == 0
    for request in receiver.requests:
        assert not {"authorization", "cookie", "proxy-authorization"} & request.headers.keys()


def certified(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


def test_https_is_verified(
    couriers: Couriers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    with Receiver(tls=certified(authority, "127.0.0.1")) as receiver:
        [stranger] = couriers(receiver.url)()
        assert stranger.kind is Kind.AWAY
        assert "certificate verify failed" in stranger.reason
        known = tmp_path / "ca.pem"
        authority.cert_pem.write_to_path(str(known))
        monkeypatch.setenv("SSL_CERT_FILE", str(known))
        courier, before = couriers(receiver.url), receiver.connections
        assert [courier()[0].kind for _ in range(3)] == [Kind.DELIVERED] * 3
        assert receiver.connections == before + 1
    with Receiver(tls=certified(authority, "another.example")) as another:
        [misnamed] = couriers(another.url)()
        assert misnamed.kind is Kind.AWAY
        assert "127.0.0.1" in misnamed.reason
        assert another.requests == []


def test_who_can_check_no_certificate_refuses_to_work(
    couriers: Couriers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nowhere = tmp_path / "nowhere.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(nowhere))
    with pytest.raises(Refused, match=rf"authorities from {nowhere}: No such file"):
        couriers("https://127.0.0.1/")
