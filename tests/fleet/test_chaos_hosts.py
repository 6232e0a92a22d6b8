"""The disks and the clocks that chaos gives to servers: full, or wrong, and right again."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import redis

from lab.chaos.hosts import Host, RedisHost
from lab.chaos.machines import Clock, Disk, enter_own_namespace, library
from tests.support.folders import short_folder
from tests.support.world import eventually

LARGE = "x" * 20_000  # bytes, which need pages of their own


@contextmanager
def running(host: Host) -> Iterator[None]:
    host.keep()
    try:
        host.wait_until_it_serves()
        yield
    finally:
        host.end()


def append(client: redis.Redis) -> Any:
    """The id of a new entry; None where Redis refuses it, or is not there."""
    with suppress(redis.RedisError):
        return client.xadd("log", {"data": LARGE})


def in_a_mount_namespace(test: Callable[[], None]) -> None:
    """Run it in a thread that sees its own mounts: whatever it leaves behind ends with it."""

    def run() -> None:
        if not enter_own_namespace():
            pytest.skip("this container may not mount anything")
        test()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount a disk"
)
def test_redis_keeps_what_it_acknowledged_before_its_disk_was_full() -> None:
    def test() -> None:
        with short_folder() as folder:
            host = RedisHost(folder / "log", folder / "run")
            disk = Disk(host.data)
            assert disk.mount()
            try:
                with running(host), redis.Redis.from_url(host.url) as client:
                    host.may_end.set()
                    acknowledged = [append(client)]
                    disk.fill()
                    while id_ := append(client):
                        acknowledged.append(id_)
                    disk.make_room()
                    acknowledged.append(eventually(lambda: append(client), "a new entry"))
                    there = [id_ for id_, _ in client.xrange("log")]
                    assert [id_ for id_ in acknowledged if id_ not in there] == []
            finally:
                disk.unmount()

    in_a_mount_namespace(test)


def test_a_clock_that_is_set_is_wrong_at_once_and_right_again() -> None:
    with short_folder() as folder:
        if not library(folder):
            pytest.skip("there is no C compiler")
        host = RedisHost(folder / "log", folder / "run")
        host.clock = Clock(folder, "log")
        with running(host), redis.Redis.from_url(host.url) as client:
            for ahead in (3600, -3600, 0):
                host.clock.set(ahead)
                eventually(lambda by=ahead: is_ahead(client, by), "the jump")  # type: ignore[misc]


def is_ahead(client: redis.Redis, seconds: int) -> bool:
    there: Any = client.time()
    return bool(abs(there[0] - time.time() - seconds) < 60)
