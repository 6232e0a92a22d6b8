"""Hostile requests over real sockets: a 4xx or a closed connection for each; the API lives on."""

import gzip
import json
import re
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from tests.support.api import CLOSE, FORM, JSON, POST, Api, ask, statuses
from tests.support.world import PATIENCE, World, eventually

RIDE = b"distance=5"
JSON_RIDE = b'{"distance": 5}'


def get(target: bytes, *headers: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + CLOSE + b"".join(headers) + b"\r\n"


def with_body(head: bytes, body: bytes, *headers: bytes) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return head + b"".join(header + b"\r\n" for header in headers) + length + b"\r\n" + body


def chunked(head: bytes, *chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    parts = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + parts + end


def claiming(length: bytes) -> bytes:
    return FORM + b"Content-Length: " + length + b"\r\n\r\n" + RIDE


# Bodies, their lengths and encodings, heads, and URLs.
CORPUS = {
    "JSON a byte too long": with_body(JSON, JSON_RIDE.ljust(16 * 1024 + 1)),
    "eight thousand fields": with_body(FORM, b"a&" * 8000),
    "a chunk size that overflows": chunked(JSON, end=b"f" * 17 + b"\r\n" + JSON_RIDE),
    "two lengths": claiming(b"10\r\nContent-Length: 11"),
    "a length and chunks": chunked(JSON + b"Content-Length: 5\r\n", JSON_RIDE),
    "a negative length": claiming(b"-1"),
    "JSON that is not UTF-8": with_body(JSON, b'{"distance": 5, "x": "\xff"}'),
    "a NUL in a form": with_body(FORM, b"distance=5\x00"),
    "a form in another charset": with_body(POST, RIDE, FORM.split(b"\r\n")[3] + b"; charset=utf-7"),
    "gzip that is gzip": with_body(JSON, gzip.compress(JSON_RIDE), b"Content-Encoding: gzip"),
    "a key that is not ASCII": with_body(FORM, RIDE, b"Idempotency-Key: \xc3\xa9"),
    "a header of a megabyte": get(b"/healthz", b"X: " + b"a" * 1_000_000 + b"\r\n"),
    "two keys": with_body(FORM, RIDE, b"Idempotency-Key: a", b"Idempotency-Key: b"),
    "garbage": b"\x00\x01\x02 garbage\r\n\r\n",
    "a number of 5,000 digits": get(b"/rides/" + b"9" * 5000),
    "bad UTF-8 in the path": get(b"/rides/%ff%fe"),
}

# What two programs may understand differently.
HOST = b"Host: x\r\n"
TWO_WAYS = {
    "no host": FORM.replace(HOST, b""),
    "an empty host": FORM.replace(HOST, b"Host:\r\n"),
    "two hosts": FORM + b"Host: y\r\n",
    "the same host twice": FORM + HOST,
    "a host and an empty one": FORM + b"Host:\r\n",
    "a host with a path": FORM.replace(HOST, b"Host: x/y\r\n"),
    "a host with a user": FORM.replace(HOST, b"Host: me@x\r\n"),
    "a host that is not ASCII": FORM.replace(HOST, b"Host: \xc3\xa9\r\n"),
    "two hosts before HTTP/1.1": FORM.replace(b"/1.1", b"/1.0") + b"Host: y\r\n",
    "Content_Type": FORM + b"Content_Type: application/json\r\n",
    "Content_Length": FORM + b"Content_Length: 9\r\n",
    "the same key twice": FORM + b"Idempotency-Key: a\r\nIdempotency-Key: a\r\n",
}

# What a slow client sends, once and then again and again.
SLOW = {
    "nothing": (b"", b""),
    "half a head": (FORM, b""),
    "a head, bit by bit": (FORM, b"X: y\r\n"),
    "half a body": (claiming(b"20"), b""),
    "a body, bit by bit": (claiming(b"9999"), b"0"),
    "no body after 100 Continue": (with_body(FORM, RIDE, b"Expect: 100-continue")[:-10], b""),
    "chunks, bit by bit": (JSON + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "no reading": (b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 2000, b"GET"),
}

HOSTS = (
    b"localhost:8000",
    b"127.0.0.1:1",
    b"[::1]:8000",
    b"[fe80::1%25eth0]:1",
    b"a-b_c.example.",
    b"x:",
    b"a..b",
    b"A" * 300,
)

KEEP_ALIVE = FORM.replace(b"Connection: close\r\n", b"")


@pytest.fixture(scope="module")
def victim(module_world: World) -> Iterator[Api]:
    """One API for all of them, with little patience."""
    yield from withstanding(module_world, "1")


@pytest.fixture(scope="module")
def patient(module_world: World) -> Iterator[Api]:
    """One that answers whoever comes to its request late, on a busy machine."""
    yield from withstanding(module_world, "60")


def withstanding(module_world: World, patience: str) -> Iterator[Api]:
    """Nothing that is refused takes a ride."""
    api = Api(module_world, API_CLIENT_TIMEOUT=patience)
    yield api
    eventually(api.answers)
    assert api.service.stop() == 0
    said = api.service.output.read_text()
    assert "Traceback" not in said
    assert "Unexpected exit from worker" not in said  # granian's words; it starts another one
    assert module_world.truth == (module_world.start, 0)


def is_refused(received: bytes) -> bool:
    """Whether every answer, if there was one, is a 4xx."""
    return all(400 <= status < 500 for status in statuses(received))


@pytest.mark.parametrize("kind", CORPUS)
def test_it_is_refused_or_hung_up_on(victim: Api, kind: str) -> None:
    assert is_refused(ask(victim.port, CORPUS[kind]))
    eventually(victim.answers)


@pytest.mark.parametrize("kind", TWO_WAYS)
def test_what_can_be_read_in_two_ways_is_refused(patient: Api, kind: str) -> None:
    received = ask(patient.port, with_body(TWO_WAYS[kind], RIDE))
    assert statuses(received) == [400]
    assert b"application/problem+json" in received


def test_a_host_may_be_any_and_need_not_be_there_before_http_1_1(patient: Api) -> None:
    asked = [get(b"/healthz").replace(b" x\r", b" " + host + b"\r") for host in HOSTS]
    asked.append(b"GET /healthz HTTP/1.0\r\n\r\n")
    asked.append(get(b"/healthz").replace(b"close\r", b"close, upgrade\r\nUpgrade: websocket\r"))
    assert [statuses(ask(patient.port, each)) for each in asked] == [[200]] * len(asked)


def ask_slowly(port: int, first: bytes, more: bytes) -> bytes:
    """Send `first`, then `more` from time to time; returns what comes until the server hangs up.

    Who sends more requests reads nothing.
    """
    deadline = time.monotonic() + 2 * PATIENCE
    received = b""
    address = ("127.0.0.1", port)
    with suppress(ConnectionError), socket.create_connection(address, timeout=0.1) as client:
        client.sendall(first)
        while True:
            assert time.monotonic() < deadline, "the server does not hang up"
            with suppress(TimeoutError):
                if more == b"GET":
                    time.sleep(0.1)
                elif part := client.recv(65_536):
                    received += part
                else:
                    break
            with suppress(TimeoutError):
                client.send(more)
    return received


@pytest.mark.proves("slow-client")
def test_who_is_slow_is_refused_or_hung_up_on(victim: Api) -> None:
    """Before the sockets' own patience, a minute, is at an end."""
    with ThreadPoolExecutor(len(SLOW)) as clients:
        asked = [clients.submit(ask_slowly, victim.port, *slow) for slow in SLOW.values()]
        received = {kind: each.result() for kind, each in zip(SLOW, asked, strict=True)}
    told = {kind: statuses(received[kind]) for kind in SLOW}
    assert told.pop("no reading") in ([], [200])
    # The connection may be reset before the client has read the 408.
    assert all(status in (100, 408, 411) for answers in told.values() for status in answers)
    assert told["half a body"] == [408]
    said = received["half a body"].partition(b"\r\n\r\n")[2]
    assert json.loads(said) == {
        "type": "about:blank",
        "title": "Request Timeout",
        "status": 408,
        "detail": "the body did not arrive in time",
    }
    assert told["nothing"] == told["half a head"] == told["a head, bit by bit"] == []


def test_who_leaves_early_leaves_no_ride_and_no_trace(victim: Api) -> None:
    request = claiming(b"10")
    for sent in range(0, len(request), 7):
        with socket.create_connection(("127.0.0.1", victim.port)) as client:
            client.sendall(request[:sent])
            if sent % 2:  # a reset instead of an orderly end
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    eventually(victim.answers)


UNREAD = {
    "a form that is too long": KEEP_ALIVE + b"Content-Length: 17000\r\n",
    "another charset": KEEP_ALIVE.rstrip() + b"; charset=utf-7\r\nContent-Length: 10\r\n",
    "chunks": KEEP_ALIVE + b"Transfer-Encoding: chunked\r\n",
    "no such path": KEEP_ALIVE.replace(b"/rides", b"/ride") + b"Content-Length: 10\r\n",
    "another method": KEEP_ALIVE.replace(b"POST", b"PUT") + b"Content-Length: 10\r\n",
    "a GET": KEEP_ALIVE.replace(b"POST /rides", b"GET /healthz") + b"Content-Length: 10\r\n",
}


@pytest.mark.parametrize("kind", UNREAD)
def test_who_is_answered_before_its_body_is_told_that_the_connection_ends(
    patient: Api, kind: str
) -> None:
    """Else a client would send its next request on a connection that is about to be closed."""
    received = ask(patient.port, UNREAD[kind] + b"\r\n")
    assert len(statuses(received)) == 1
    assert b"\r\nconnection: close\r\n" in received.lower()


def test_a_refusal_after_the_whole_body_keeps_the_connection(patient: Api) -> None:
    refused = with_body(KEEP_ALIVE, b"distance=-5")
    assert statuses(ask(patient.port, refused * 2 + get(b"/healthz"))) == [422, 422, 200]


def ride(metres: int) -> bytes:
    body = b"distance=%d" % metres
    return KEEP_ALIVE + b"Content-Length: %d\r\n\r\n" % len(body) + body


def test_pipelined_requests_get_their_own_answers_in_their_order(api: Api, world: World) -> None:
    """And nothing is done after one that is garbled, or longer than it says."""
    received = ask(api.port, b"".join(map(ride, range(1, 51))) + b"the end\r\n\r\n")
    answers = [int(metres) for metres in re.findall(rb'"distance":(\d+)\.000', received)]
    assert answers == list(range(1, 51))
    assert statuses(received) == [201] * 50 + [400]
    assert world.truth == (world.start + 50, sum(range(1, 51)))
    for between in (b"garbage\r\n\r\n", b"00", CORPUS["two lengths"], CORPUS["a negative length"]):
        first, *others = statuses(ask(api.port, ride(1) + between + with_body(FORM, b"distance=2")))
        assert first == 201
        assert all(400 <= status < 500 for status in others)
    assert world.truth == (world.start + 54, sum(range(1, 51)) + 4)


def test_a_variable_of_the_process_is_no_header_of_a_request(world: World) -> None:
    """WSGI has both in one dictionary."""
    api = Api(world, HTTP_IDEMPOTENCY_KEY="k", CONTENT_TYPE="x", HTTP_TRANSFER_ENCODING="chunked")
    for ride in (1, 2):
        assert api.post("5").json()["ride"]["id"] == world.start + ride
