"""The API in a process of its own, a client for it, and requests that are sent as they are."""

import json
import re
import socket
from http import HTTPStatus

import httpx
from jsonschema import Draft202012Validator

from api.views import DESCRIPTION
from demo.embedded.welcome import answers
from lab.ports import free_ports
from tests.support import plain_http
from tests.support.world import Service, World, eventually

PROBLEM = Draft202012Validator(json.loads(DESCRIPTION) | {"$ref": "#/components/schemas/Problem"})
# Those that RFC 9110 renamed.
RENAMED = {413: "Content Too Large", 422: "Unprocessable Content"}
KEY_REUSED = "/openapi.json#key-reused"
OTHER_HISTORY = "/openapi.json#other-history"
NOT_TAKEN = "/openapi.json#ride-not-taken"
MAYBE_TAKEN = "/openapi.json#ride-maybe-taken"
# The beginnings of requests, as bytes.
CLOSE = b"Host: x\r\nConnection: close\r\n"
POST = b"POST /rides HTTP/1.1\r\n" + CLOSE
FORM = POST + b"Content-Type: application/x-www-form-urlencoded\r\n"
JSON = POST + b"Content-Type: application/json\r\n"


NO_RIDES = """
    TRUNCATE rides, ratings, staged_log_records, idempotency_keys CASCADE;
    SELECT setval('log_position', cell_start() + 1, false)
"""


class Api:
    """The API in a process of its own, and a client for it.

    It has one worker unless it is told otherwise: each imports all anew.
    """

    def __init__(self, world: World, **environment: str) -> None:
        own = {"API_PORT": str(free_ports()), "API_WORKERS": "1"} | environment
        self.port = int(own["API_PORT"])
        self.service: Service = world.service("api", **own)
        self.client = plain_http.client(self.port)
        eventually(self.answers, "an answer of the API")

    def answers(self) -> bool:
        return answers(f"127.0.0.1:{self.port}", "/healthz")

    def post(self, distance: object = "5", **headers: str) -> httpx.Response:
        return self.client.post("/rides", data={"distance": distance}, headers=headers)

    def emptied(self, world: World, *functions: str) -> "Api":
        """For one more test: without rides, and without triggers that call these functions."""
        for name in functions:
            world.connection.execute(f"DROP FUNCTION IF EXISTS {name} CASCADE".encode())
        world.connection.execute(NO_RIDES, prepare=False)
        eventually(self.ready)
        return self

    def ready(self) -> bool:
        return self.client.get("/readyz").status_code == 200


def is_problem(response: httpx.Response, status: int, kind: str = "about:blank") -> bool:
    """Whether the answer has that status, and a problem of that type, as described."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    PROBLEM.validate(problem)
    assert (problem["status"], problem["type"]) == (status, kind)
    phrase = RENAMED.get(status, HTTPStatus(status).phrase)
    assert kind != "about:blank" or problem["title"] == phrase
    return len(problem["detail"]) > 5


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
