"""Redis fails over to a replica that lacks the newest entries; the old primary comes back.

With `WAIT` the streamer has committed none of those, so nothing that counts is lost.
"""

import random
from contextlib import suppress

import redis

from chaos.faults.scene import Moot, Scene
from chaos.faults.servers import one_behind
from chaos.fleet import STREAM
from chaos.redis_pair import RedisPair


def fail_over(scene: Scene, dice: random.Random) -> str:
    """The link to the replica fails, then the primary does, and the replica is promoted.

    The primary crashes, or clients are kept from it, or some stay with it for a while: a zombie.
    Then it follows the new primary, and throws away what that one does not have.
    """
    behind_for, seconds = dice.uniform(0.2, 1.5), dice.uniform(0, 2)
    way, pair = dice.choice((_crash, _part, _leave_a_zombie)), scene.fleet.redises
    if scene.fleet.waits and way is _leave_a_zombie:
        way = _part  # whoever reads from a zombie sees less than there is
    if not pair.failing_over.acquire(blocking=False):
        raise Moot
    try:
        with one_behind(scene, dice):
            pair.cut_off()
            scene.wait(behind_for)
            lost = _missing(pair)
            way(scene, pair, seconds)
        pair.join(lost, STREAM)
    finally:
        pair.failing_over.release()
    return f"redis ({len(lost)} entries behind, {way.__name__.strip('_').replace('_', ' ')})"


def _missing(pair: RedisPair) -> list[bytes]:
    with suppress(redis.RedisError):  # another fault has crashed it
        return pair.missing(STREAM)
    return []


def _crash(_scene: Scene, pair: RedisPair, seconds: float) -> None:
    pair.primary.crash(seconds, pair.promote)


def _part(scene: Scene, pair: RedisPair, seconds: float) -> None:
    pair.fence()
    pair.promote()
    scene.wait(seconds)


def _leave_a_zombie(scene: Scene, pair: RedisPair, seconds: float) -> None:
    pair.promote()
    scene.wait(seconds)
    pair.proxy.cut_all()
