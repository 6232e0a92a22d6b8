"""`GET /log`: the log as a feed, for readers outside."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.support.api import Api, is_problem
from tests.support.world import World, drain

FOR_EVER = "max-age=31536000, immutable"


@pytest.fixture(scope="module")
def live(module_world: World) -> Iterator[Api]:
    api = Api(module_world)
    yield api
    api.client.close()


def test_x(live: Api, module_world: World) -> None:
    ride = live.post("539.837").json()["ride"]["id"]
    live.client.post(f"/rides/{ride}/rating", data={"stars": 5})
    print(live.client.get("/log").headers, live.client.get("/log").text)
    drain(module_world.streamer())
    a=live.client.get("/log")
    print(a.headers, a.text)
    a=live.client.get("/log?limit=1&type=ride.create")
    print(a.headers, a.text)
    a=live.client.get("/log" + a.headers["link"][1:-13])
    print(a.headers, a.text)
    a=live.client.get("/log?after=1000")
    print(a.headers, a.text)
    a=live.client.get("/log?type=a.b")
    print(a.headers, a.text)
    assert 0
