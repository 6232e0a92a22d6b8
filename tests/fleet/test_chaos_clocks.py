"""The clocks that chaos gives to processes: wrong, and right again."""

import time
from typing import Any

import pytest
import redis

from lab.chaos.hosts import RedisHost
from lab.chaos.machines import Clock, library
from tests.support.folders import short_folder
from tests.support.world import eventually


def test_a_clock_that_is_set_is_wrong_at_once_and_right_again() -> None:
    with short_folder() as folder:
        if not library(folder):
            pytest.skip("there is no C compiler")
        host = RedisHost(folder / "log", folder / "run")
        host.clock = Clock(folder, "log")
        host.keep()
        try:
            host.wait_until_it_serves()
            with redis.Redis.from_url(host.url) as client:
                for ahead in (3600, -3600, 0):
                    host.clock.set(ahead)
                    eventually(lambda by=ahead: is_ahead(client, by), "the jump")  # type: ignore[misc]
        finally:
            host.end()


def is_ahead(client: redis.Redis, seconds: int) -> bool:
    there: Any = client.time()
    return bool(abs(there[0] - time.time() - seconds) < 60)
