"""Requests that no well-behaved client sends, as bytes, and clients that send them."""

import gzip
import re
import socket
import time
from contextlib import suppress

from tests.support.world import PATIENCE

_CLOSE = b"Host: x\r\nConnection: close\r\n"
POST = b"POST /rides HTTP/1.1\r\n" + _CLOSE
FORM = POST + b"Content-Type: application/x-www-form-urlencoded\r\n"
JSON = POST + b"Content-Type: application/json\r\n"

RIDE = b"distance=5"
JSON_RIDE = b'{"distance": 5}'


def get(target: bytes, *headers: bytes) -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + _CLOSE + b"".join(headers) + b"\r\n"


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
    "a length of ten gigabytes": claiming(b"10000000000"),
    "eight thousand fields": with_body(FORM, b"a&" * 8000),
    "a chunk size that overflows": chunked(JSON, end=b"f" * 17 + b"\r\n" + JSON_RIDE),
    "chunks inside gzip": JSON + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two lengths": claiming(b"10\r\nContent-Length: 11"),
    "a length and chunks": chunked(JSON + b"Content-Length: 5\r\n", JSON_RIDE),
    "a negative length": claiming(b"-1"),
    "a length past 64 bits": claiming(b"9" * 30),
    "JSON that is not UTF-8": with_body(JSON, b'{"distance": 5, "x": "\xff"}'),
    "a NUL in a form": with_body(FORM, b"distance=5\x00"),
    "a NUL in a header": with_body(FORM, RIDE, b"X: a\x00b"),
    "a form in another charset": with_body(POST, RIDE, FORM.split(b"\r\n")[3] + b"; charset=utf-7"),
    "gzip that is gzip": with_body(JSON, gzip.compress(JSON_RIDE), b"Content-Encoding: gzip"),
    "a key that is not ASCII": with_body(FORM, RIDE, b"Idempotency-Key: \xc3\xa9"),
    "a header of a megabyte": get(b"/healthz", b"X: " + b"a" * 1_000_000 + b"\r\n"),
    "a header name with a space": get(b"/healthz", b"b ad: 1\r\n"),
    "two keys": with_body(FORM, RIDE, b"Idempotency-Key: a", b"Idempotency-Key: b"),
    "garbage": b"\x00\x01\x02 garbage\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 190,
    "a path of 100 KB": get(b"/" + b"a" * 100_000),
    "a number of 5,000 digits": get(b"/rides/" + b"9" * 5000),
    "bad UTF-8 in the path": get(b"/rides/%ff%fe"),
    "a way out": get(b"/../../etc/passwd"),
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


def ask(port: int, request: bytes, half_close: bool = False) -> bytes:
    """Send a request; returns all that comes back until the server hangs up, as it must."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:
        received = b""
        try:
            client.sendall(request)
            if half_close:
                client.shutdown(socket.SHUT_WR)
        except OSError:  # it hung up in the middle; it may have said why
            pass
        try:
            while part := client.recv(65536):
                received += part
        except ConnectionError:
            pass
        return received


def statuses(received: bytes) -> list[int]:
    """The status of each answer; empty where the server only hung up."""
    assert received.startswith(b"HTTP/1.") or not received
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)]


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
