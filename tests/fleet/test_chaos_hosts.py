"""The disks and the clocks that chaos gives to servers: what a fault does to them, and its end."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis

from demo.embedded.failures import ServerFailed
from demo.embedded.stream_servers import STREAM_SERVERS
from lab.chaos.clocks import Clock, library
from lab.chaos.disks import Disk, enter_own_namespace
from lab.chaos.faults.shortages import NEXT_SEGMENT
from lab.chaos.hosts import Host, PostgresHost, RedisHost
from tests.support.folders import short_folder
from tests.support.prepared import put_into
from tests.support.world import eventually

root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount a disk"
)
LARGE = "x" * 20_000  # bytes, which need pages of their own
MANY = 1000
TAKE_MANY = f"INSERT INTO rides (distance) SELECT 5 FROM generate_series(1, {MANY})"


@contextmanager
def running(host: Host) -> Iterator[None]:
    host.keep()
    try:
        host.wait_until_it_serves()
        yield
    finally:
        host.end()


@contextmanager
def on_a_disk(host: Host, prepared: Path | None = None) -> Iterator[Disk]:
    disk = Disk(host.data)
    assert disk.mount()
    try:
        if prepared:
            put_into(host.data, prepared)
        with running(host):
            yield disk
    finally:
        disk.unmount()


def in_a_mount_namespace(test: Callable[[], None]) -> None:
    """Run it in a thread that sees its own mounts: whatever it leaves behind ends with it."""

    def run() -> None:
        if not enter_own_namespace():
            pytest.skip("this container may not mount anything")
        test()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()


@root
@pytest.mark.parametrize("kind", STREAM_SERVERS)
def test_redis_keeps_what_it_acknowledged_when_its_disk_is_full(kind: str) -> None:
    def test() -> None:
        with short_folder() as folder:
            host = RedisHost(folder / "log", folder / "run", kind=STREAM_SERVERS[kind])
            with on_a_disk(host) as disk, redis.Redis.from_url(host.url) as client:
                host.may_end.set()
                acknowledged = [append(client)]
                disk.fill()
                while id_ := append(client):
                    acknowledged.append(id_)
                disk.make_room()
                acknowledged.append(eventually(lambda: append(client), "a new entry"))
                there = [id_ for id_, _ in client.xrange("log")]
                assert [id_ for id_ in acknowledged if id_ not in there] == []
                assert host.failures == []

    in_a_mount_namespace(test)


def append(client: redis.Redis) -> Any:
    """The id of a new entry; None where Redis refuses it, or is not there."""
    with suppress(redis.RedisError):
        return client.xadd("log", {"data": LARGE})


def test_a_server_stays_down_for_good_only_if_another_took_its_place() -> None:
    def fail() -> None:
        raise TimeoutError("nobody was promoted")

    with short_folder() as folder:
        host = RedisHost(folder / "log", folder / "run")
        with running(host):
            with pytest.raises(TimeoutError):
                host.crash(0, fail, for_good=True)
            assert host.running
            host.crash(0, for_good=True)
            assert not host.running
            with pytest.raises(ServerFailed):
                host.crash(0)


@root
@pytest.mark.parametrize("wal", [False, True], ids=["for rows", "for its WAL"])
def test_postgres_keeps_what_it_committed_when_its_disk_is_full(prepared: Path, wal: bool) -> None:
    def test() -> None:
        with short_folder() as folder:
            host = PostgresHost(folder / "data", folder / "run")
            with on_a_disk(host, prepared) as disk:
                host.may_end.set()
                statement = NEXT_SEGMENT if wal else TAKE_MANY
                with closing(psycopg.connect(host.url, autocommit=True)) as connection:
                    disk.fill()
                    done = until_it_fails(lambda: connection.execute(statement))
                disk.make_room()
                eventually(lambda: count(host) is not None, "the end of recovery")
                assert count(host) == (0 if wal else done * MANY)
                assert host.failures == []

    in_a_mount_namespace(test)


def until_it_fails(work: Callable[[], object]) -> int:
    """Do it until Postgres fails; returns how often that worked."""
    done = 0
    with suppress(psycopg.OperationalError):
        while work():
            done += 1
    return done


def count(host: Host) -> int | None:
    with suppress(psycopg.Error), closing(psycopg.connect(host.url)) as connection:
        row = connection.execute("SELECT count(*) FROM rides").fetchone()
        return row[0] if row else None
    return None


@pytest.fixture
def clocks() -> Iterator[Path]:
    """A folder with the library that clocks need."""
    with short_folder() as folder:
        if not library(folder):
            pytest.skip("there is no C compiler")
        yield folder


@pytest.mark.parametrize("kind", STREAM_SERVERS)
def test_ids_in_the_log_rise_although_its_clock_is_set_back(clocks: Path, kind: str) -> None:
    host = RedisHost(clocks / "log", clocks / "run", kind=STREAM_SERVERS[kind])
    host.clock = Clock(clocks, "log")
    with running(host), redis.Redis.from_url(host.url) as client:
        ids = [moment(client)]
        for ahead in (3600, -3600):
            host.clock.set(ahead)
            eventually(lambda by=ahead: about(client.time()[0], by), "the jump")  # type: ignore[misc]
            ids.append(moment(client))
        assert ids == sorted(set(ids))
        assert ids[1][0] > ids[0][0] + 3_500_000


def moment(client: redis.Redis) -> tuple[int, int]:
    id_: Any = client.xadd("log", {"data": "x"})
    milliseconds, _, number = id_.decode().partition("-")
    return int(milliseconds), int(number)


def about(moment: float, ahead: int) -> bool:
    return abs(moment - time.time() - ahead) < 60


def test_the_clock_of_postgres_is_wrong_and_right_again(clocks: Path, prepared: Path) -> None:
    host = PostgresHost(clocks / "data", clocks / "run")
    host.clock = Clock(clocks, "data")
    put_into(host.data, prepared)
    with running(host), closing(psycopg.connect(host.url, autocommit=True)) as connection:

        def now() -> float:
            return float(connection.execute("SELECT extract(epoch FROM now())").fetchone()[0])  # type: ignore[index]

        for ahead in (0, 3600, -3600, 0):
            host.clock.set(ahead)
            assert about(now(), ahead)


def test_a_process_of_ours_waits_no_longer_because_its_clock_jumps(clocks: Path) -> None:
    clock = Clock(clocks, "ours")
    program = "import threading, time; print(time.time()); threading.Event().wait(0.01)"
    clock.set(-6 * 3600)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | clock.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert about(float(done.stdout), -6 * 3600)
