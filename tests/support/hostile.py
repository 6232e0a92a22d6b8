"""Requests as bytes, and a client that sends them as they are."""

import re
import socket

CLOSE = b"Host: x\r\nConnection: close\r\n"
POST = b"POST /rides HTTP/1.1\r\n" + CLOSE
FORM = POST + b"Content-Type: application/x-www-form-urlencoded\r\n"
JSON = POST + b"Content-Type: application/json\r\n"


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
