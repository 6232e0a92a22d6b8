"""Shortages: Redis has no memory left, or a disk has no room left."""

import random
import time
from contextlib import closing, suppress
from functools import partial

import psycopg
import redis

from demo.embedded.failures import ServerFailed
from lab.chaos.faults.scene import Moot, Scene, held, moot_if_away
from lab.chaos.fleet import SERVERS
from lab.chaos.hosts import PATIENCE
from lab.chaos.postgres_pair import ask
from lab.chaos.redis_pair import client
from lab.until import until
from unified_log.errors import Unavailable

AGAIN = 0.5  # seconds; a Redis that was restarted, or reset by another fault, has lost the limit
CALM_DOWN = 1.0  # seconds; a server that failed on a full disk has ended by then
TURN = 10.0  # seconds to wait for a restore or a fail-over to end
HANGS = 20.0  # seconds without an answer
SEGMENTS = 20  # of the WAL, more than Postgres keeps in reserve
NEXT_SEGMENT = "SELECT pg_logical_emit_message(false, 'full', ''), pg_switch_wal()"


def fill_redis(scene: Scene, dice: random.Random) -> str:
    """Redis is at its memory limit for some seconds and refuses to append."""
    _limit_memory(scene, 1, dice.uniform(0.5, 3))
    return "redis"


def fill_memory(scene: Scene, dice: random.Random) -> str:
    """Redis is at its memory limit for long: at what it uses, so that trimming helps, or lower."""
    seconds, drastic = dice.uniform(10, 20), dice.random() < 0.5
    with moot_if_away(), scene.fleet.redis_client() as primary:
        limit = 1 if drastic else int(primary.info("memory")["used_memory"])
    _limit_memory(scene, limit, seconds)
    return f"redis ({'no memory at all' if drastic else 'what it used'})"


def _limit_memory(scene: Scene, limit: int, seconds: float) -> None:
    """Limit the memory of the primary, also of one that is restarted or promoted meanwhile."""
    end, was_limited = time.monotonic() + seconds, False
    while (left := end - time.monotonic()) > 0 and not scene.over.is_set():
        with suppress(redis.RedisError), scene.fleet.redis_client() as primary:
            primary.config_set("maxmemory", limit)
            was_limited = True
        scene.wait(min(AGAIN, left))
    for server in scene.fleet.redises.servers:
        # One that is down restarts without a limit; one that is up confirms that it has none.
        with client(server) as limited:
            unlimit = partial(limited.config_set, "maxmemory", 0)
            until(unlimit, "Redis keeps its limit", PATIENCE, away=(redis.RedisError,))
    if not was_limited:
        raise Moot


def fill_disk(scene: Scene, dice: random.Random) -> str:
    """A server's disk is full; it may end, and fail to start. Postgres may need new WAL."""
    name, seconds = dice.choice(SERVERS), dice.uniform(1, 6)
    wal = name == "postgres" and dice.random() < 0.5
    pair = scene.fleet.pairs[name]
    with held(pair.busy, TURN):  # no other fault copies its data meanwhile
        server = pair.primary
        if server.disk is None:
            raise Moot
        server.may_end.set()
        server.disk.fill()
        if wal:
            _need_wal(scene)
        scene.wait(seconds)
        server.disk.make_room()
        server.wait_until_it_serves()
        time.sleep(CALM_DOWN)
        server.wait_until_it_serves()
        server.may_end.clear()
    if name == "postgres":
        _restart_if_it_hangs(scene)
    return f"{name}{' (for its WAL)' if wal else ''}"


def _need_wal(scene: Scene) -> None:
    """Have Postgres begin new segments of its WAL, until it can't."""
    with suppress(psycopg.Error, Unavailable), closing(scene.fleet.connect()) as connection:
        for _ in range(SEGMENTS):
            connection.execute(NEXT_SEGMENT)


def _restart_if_it_hangs(scene: Scene) -> None:
    """Play a supervisor with a liveness probe.

    Seen with Postgres 18: after a crash, a server whose recovery failed for want of room neither
    ends nor tries again, and its postmaster tells every client for ever that it is starting.
    """
    try:
        until(lambda: ask(scene.fleet.postgres, "SELECT true"), "it hangs", HANGS)
    except TimeoutError:
        with suppress(ServerFailed):  # a fail-over has ended it
            scene.fleet.postgres.crash(0)


def fill_warehouse(scene: Scene, dice: random.Random) -> str:
    """The disk that holds the warehouse, and Spark's temporary files, is full."""
    seconds, disk = dice.uniform(5, 25), scene.fleet.warehouse
    if scene.runs is None or not disk.is_mounted:
        raise Moot
    disk.fill()
    scene.wait(seconds)
    disk.make_room()
    return "the warehouse"
