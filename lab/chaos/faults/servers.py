"""Postgres and Redis crash; Redis also loses some entries, or all."""

import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.chaos.faults.scene import Scene, moot_if_away
from lab.chaos.fleet import READERS


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
        server = scene.fleet.redis
        server.crash(down_for, lambda: cut_newest(server.append_only_file, entries))
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
    with moot_if_away(), one_behind(scene, dice), scene.fleet.redis_client() as primary:
        primary.flushall()
    return "redis"
