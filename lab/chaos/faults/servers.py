"""Postgres and Redis crash; Redis also loses some or all entries, or runs out of memory."""

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from demo.embedded.servers import Redis
from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.fleet import READERS
from lab.chaos.kept_server import KeptServer
from lab.chaos.redis_pair import client


@contextmanager
def one_behind(scene: Scene, dice: random.Random) -> Iterator[None]:
    """In most cases stop a reader first, so that it has not read what is then lost.

    They read within milliseconds, and losing what they have counted does not affect them.
    """
    stop, name, seconds = dice.random() < 0.7, dice.choice(READERS), dice.uniform(0.3, 1.5)
    reader = scene.fleet.services[name]
    if not stop or not reader.busy.acquire(blocking=False):
        yield
        return
    try:
        reader.signal(signal.SIGSTOP)
        scene.wait(seconds)
        yield
    finally:
        reader.signal(signal.SIGCONT)
        reader.busy.release()


def crash_postgres(scene: Scene, dice: random.Random) -> str:
    """SIGKILL Postgres and all its processes; it recovers from the crash when it restarts."""
    scene.fleet.postgres.crash(dice.uniform(0, 3))
    return "postgres"


def crash_redis(scene: Scene, dice: random.Random) -> str:
    """SIGKILL, and a restart with everything that Redis had acknowledged."""
    scene.fleet.redis.crash(dice.uniform(0, 3))
    return "redis"


def cut_redis(scene: Scene, dice: random.Random) -> str:
    """SIGKILL, and a restart without the newest entries, which were in the log before."""
    down_for, entries = dice.uniform(0, 2), dice.randint(1, 60)
    with one_behind(scene, dice):
        kept = scene.fleet.redis
        kept.crash(down_for, lambda: cut_newest(kept.server.append_only_file, entries))
    return f"redis ({entries} entries)"


def cut_newest(file: Path, entries: int) -> None:
    """Cut `entries` off a server's append-only file; the rest of their batch goes too."""
    content = file.read_bytes()
    end = len(content)
    for _ in range(entries):
        name = content.rfind(b"XADD", 0, end)
        if name < 0:
            break
        end = content.rfind(b"*", 0, name)  # the beginning of the command
    file.write_bytes(content[:end])


def flush_redis(scene: Scene, dice: random.Random) -> str:
    """FLUSHALL: the log is gone."""
    try:
        with one_behind(scene, dice), scene.fleet.redis_client() as primary:
            primary.flushall()
    except redis.RedisError:
        raise Moot from None
    return "redis"


def fill_redis(scene: Scene, dice: random.Random) -> str:
    """Redis is at its memory limit for some seconds and refuses to append."""
    seconds, server = dice.uniform(0.5, 3), scene.fleet.redis
    try:
        with client(server) as primary:
            primary.config_set("maxmemory", 1)
    except redis.RedisError:
        lift_the_limit(server)  # perhaps only the answer was lost
        raise Moot from None
    scene.wait(seconds)
    lift_the_limit(server)
    return "redis"


def lift_the_limit(server: KeptServer[Redis]) -> None:
    """Let it use any amount of memory again; returns when it has been told."""
    while True:
        try:
            with client(server) as limited:
                limited.config_set("maxmemory", 0)
            return
        except redis.RedisError:
            # If it is down, it restarts without a limit; if it is up, the next attempt lifts it.
            server.wait_until_it_serves()
