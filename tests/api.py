"""The API in a process of its own, and a client for it."""

import time
from collections.abc import Callable

import httpx

from tests.world import Service, World, eventually, free_port


class Api:
    """The API in a process of its own, and a client for it."""

    def __init__(self, world: World, **environment: str) -> None:
        self.port = free_port()
        self.service: Service = world.service("api", API_PORT=str(self.port), **environment)
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)
        eventually(self.answers, "an answer of the API")

    def answers(self) -> bool:
        try:
            return self.client.get("/healthz").status_code == 200
        except httpx.TransportError:
            return False

    def post(self, distance: object = "5", **headers: str) -> httpx.Response:
        return self.client.post("/rides", data={"distance": distance}, headers=headers)

    def ready(self) -> bool:
        return self.client.get("/readyz").status_code == 200


def is_clear_json(response: httpx.Response, status: int) -> bool:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return len(response.json()["message"]) > 5


def within_two_seconds(request: Callable[[], httpx.Response]) -> httpx.Response:
    """The bound is part of the API's contract; a stuck request would take far longer."""
    start = time.monotonic()
    answer = request()
    assert time.monotonic() - start < 2
    return answer
