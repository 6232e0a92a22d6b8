"""Redis has no memory left for long; a server has no room left on its disk."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import psycopg
import redis

from lab.chaos.disks import Disk
from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.faults.servers import lift_the_limit
from lab.chaos.hosts import PostgresHost, RedisHost
from lab.chaos.kept_server import KeptServer
from rocket_rides.errors import Unavailable

PLENTY = 45.0  # seconds between two long shortages; while there is one, other faults meet little
AGAIN = 0.5  # seconds; a Redis that was restarted knows of no limit
CALM_DOWN = 1.0  # seconds until whoever failed on a full disk has ended
TURN = 10.0  # seconds to wait for a restore or a fail-over to end
HANGS = 20.0  # seconds without an answer
SEGMENTS = 20  # of the WAL, more than Postgres keeps in reserve
NEXT_SEGMENT = "SELECT pg_logical_emit_message(false, 'full', ''), pg_switch_wal()"


def fill_memory(scene: Scene, dice: random.Random) -> str:
    """Redis is at its memory limit for long; rides are taken, and wait in the outbox.

    Half of the time a lower one than it uses, else just what it uses: then trimming makes room.
    """
    seconds, drastic = dice.uniform(20, 30), dice.random() < 0.5
    try:
        with scene.fleet.redis_client() as client:
            limit = 1 if drastic else int(client.info("memory")["used_memory"])
    except redis.RedisError:
        raise Moot from None
    too_soon = time.monotonic() < scene.starved_until + PLENTY
    if too_soon or not scene.starving.acquire(blocking=False):
        raise Moot
    try:
        _keep_limited(scene, limit, seconds)
    finally:
        scene.starved_until = time.monotonic()
        scene.starving.release()
    return f"redis ({seconds:.0f} s, {'no memory at all' if drastic else 'what it used'})"


def _keep_limited(scene: Scene, limit: int, seconds: float) -> None:
    """The primary has no more memory than this, whoever is restarted or promoted meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not scene.over.is_set():
        with suppress(redis.RedisError), scene.fleet.redis_client() as client:
            client.config_set("maxmemory", limit)
        scene.wait(AGAIN)
    for server in scene.fleet.redises.servers:
        lift_the_limit(server)


def fill_disk(scene: Scene, dice: random.Random) -> str:
    """The disk of Postgres or of Redis is full, and the server ends as often as it needs room.

    Half of the time Postgres needs it at once, for its WAL.
    """
    name, seconds = dice.choice(("postgres", "redis")), dice.uniform(1, 6)
    fleet, wal = scene.fleet, dice.random() < 0.5
    if name == "redis":
        with _filled(lambda: fleet.redis, fleet.redises.failing_over) as disk:
            scene.wait(seconds)
            return f"redis (at {disk.used() // 2**20} MB)"
    with _filled(lambda: fleet.postgres, scene.restoring) as disk:
        if wal:
            _need_wal(scene)
        scene.wait(seconds)
        said = f"postgres (at {disk.used() // 2**20} MB{', for its WAL' if wal else ''})"
    _restart_if_it_hangs(scene)
    return said


def fill_warehouse(scene: Scene, dice: random.Random) -> str:
    """The disk on which the nightly job has its warehouse, and Spark its files, is full."""
    seconds, disk = dice.uniform(5, 25), scene.fleet.warehouse
    if scene.nights is None or not disk.is_mounted:
        raise Moot
    disk.fill()
    try:
        scene.wait(seconds)
        return f"the warehouse (at {disk.used() / 2**20:.1f} MB)"
    finally:
        disk.make_room()


@contextmanager
def _filled(
    primary: Callable[[], KeptServer[PostgresHost] | KeptServer[RedisHost]], guard: threading.Lock
) -> Iterator[Disk]:
    """The `guard` keeps other faults from copying the server's data meanwhile."""
    if primary().server.disk is None or not guard.acquire(timeout=TURN):
        raise Moot
    kept = primary()
    disk = kept.server.disk
    assert disk is not None  # noqa: S101 (all servers have one, or none)
    try:
        kept.may_end.set()
        disk.fill()
        yield disk
    finally:
        disk.make_room()
        kept.wait_until_it_serves()
        time.sleep(CALM_DOWN)
        kept.wait_until_it_serves()
        kept.may_end.clear()
        guard.release()


def _restart_if_it_hangs(scene: Scene) -> None:
    """As a supervisor does that asks a server whether it lives.

    Seen with Postgres 18: one whose recovery has failed for want of room, after a crash, does not
    end and recovers no more; its postmaster tells every client for ever that it is starting.
    """
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline:
        with suppress(psycopg.Error, Unavailable), closing(scene.fleet.connect()):
            return
        time.sleep(AGAIN)
    scene.fleet.postgres.crash(0)


def _need_wal(scene: Scene) -> None:
    """Have Postgres begin new segments of its WAL, until it can't."""
    with suppress(psycopg.Error, Unavailable), closing(scene.fleet.connect()) as connection:
        for _ in range(SEGMENTS):
            connection.execute(NEXT_SEGMENT)
