"""Faults of Redis: the loss of some entries or all, a fail-over to a replica that lags.

After a fail-over the old primary comes back as the replica.
"""

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lab.chaos.faults.scene import Moot, Scene, held, moot_if_away
from lab.chaos.fleet import READERS
from lab.chaos.redis_pair import RedisPair

Promote = Callable[[RedisPair], None]


@contextmanager
def one_behind(scene: Scene, dice: random.Random) -> Iterator[None]:
    """In most cases stop a reader first: one that keeps up would not miss what is then lost."""
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


def cut(scene: Scene, dice: random.Random) -> str:
    """SIGKILL, and a restart without the newest entries."""
    down_for, entries = dice.uniform(0, 2), dice.randint(1, 60)
    with one_behind(scene, dice):
        server = scene.fleet.redis
        server.crash(down_for, lambda: cut_newest(server.append_only_file, entries))
    return f"redis ({entries} entries)"


def cut_newest(file: Path, entries: int) -> None:
    """Cut `entries` off the end of a server's append-only file, with the rest of their batch."""
    content = file.read_bytes()
    end = len(content)
    for _ in range(entries):
        name = content.rfind(b"XADD", 0, end)
        if name < 0:
            break
        end = content.rfind(b"*", 0, name)  # where the command begins
    file.write_bytes(content[:end])


def flush(scene: Scene, dice: random.Random) -> str:
    with moot_if_away(), one_behind(scene, dice), scene.fleet.redis_client() as primary:
        primary.flushall()
    return "redis"


def evict(scene: Scene, dice: random.Random) -> str:
    """One of the keys of the rollup's dirty minutes is gone, as where keys may be evicted."""
    with moot_if_away(), scene.fleet.redis_client() as primary:
        keys = sorted(primary.scan_iter(match="*/rollup/*"))
        if not keys:
            raise Moot
        key = dice.choice(keys)
        primary.unlink(key)
    return f"redis ({key.rpartition(b'/')[2].decode()})"


def fail_over(scene: Scene, dice: random.Random) -> str:
    """The primary crashes, or is cut off from its clients, and the replica is promoted."""
    crashes, seconds = dice.random() < 0.5, dice.uniform(0, 2)

    def promote(pair: RedisPair) -> None:
        if crashes:
            pair.primary.crash(seconds, pair.promote)
        else:
            pair.fence()
            pair.promote()
            scene.wait(seconds)

    _promote_one_behind(scene, dice, promote)
    return f"redis ({'crashed' if crashes else 'fenced'})"


def split(scene: Scene, dice: random.Random) -> str:
    """A fail-over in which clients stay with the old primary for a while, and it takes writes."""
    seconds = dice.uniform(0, 2)

    def promote(pair: RedisPair) -> None:
        pair.promote()
        scene.wait(seconds)
        pair.proxy.cut()

    _promote_one_behind(scene, dice, promote)
    return "redis"


def _promote_one_behind(scene: Scene, dice: random.Random, promote: Promote) -> None:
    """Promote a replica that lags; the old primary follows it, and drops what it lacks."""
    behind_for, pair = dice.uniform(0.2, 1.5), scene.fleet.redises
    with held(pair.busy):
        with one_behind(scene, dice):
            pair.cut_off()
            scene.wait(behind_for)
            promote(pair)
        pair.join()
