"""Redis fails over to a replica that lacks the newest entries; the old primary comes back.

With `WAIT` the streamer has committed none of those, so nothing that counts is lost.
"""

import random
from collections.abc import Callable
from contextlib import suppress

import redis

from lab.chaos.faults.scene import Scene, held
from lab.chaos.faults.servers import one_behind
from lab.chaos.fleet import STREAM
from lab.chaos.redis_pair import RedisPair


def fail_over(scene: Scene, dice: random.Random) -> str:
    """The primary crashes, or no client reaches it any more, and the replica is promoted."""
    crashes, seconds = dice.random() < 0.5, dice.uniform(0, 2)

    def promote(pair: RedisPair) -> None:
        if crashes:
            pair.primary.crash(seconds, pair.promote)
        else:
            pair.fence()
            pair.promote()
            scene.wait(seconds)

    lost = _promote_one_behind(scene, dice, promote)
    return f"redis ({lost} entries behind, {'crashed' if crashes else 'fenced'})"


def split(scene: Scene, dice: random.Random) -> str:
    """As above, but for a while clients stay with the old primary, and it takes what they write."""
    seconds = dice.uniform(0, 2)

    def promote(pair: RedisPair) -> None:
        pair.promote()
        scene.wait(seconds)
        pair.proxy.cut()

    lost = _promote_one_behind(scene, dice, promote)
    return f"redis ({lost} entries behind at first)"


def _promote_one_behind(
    scene: Scene, dice: random.Random, promote: Callable[[RedisPair], None]
) -> int:
    """Cut the replica off for a while, and promote it; returns how many entries it lacked.

    The old primary then follows the new one, and throws away what that one does not have.
    """
    behind_for, pair = dice.uniform(0.2, 1.5), scene.fleet.redises
    lost: list[bytes] = []
    with held(pair.busy):
        with one_behind(scene, dice):
            pair.cut_off()
            scene.wait(behind_for)
            with suppress(redis.RedisError):  # another fault has crashed it
                lost = pair.missing(STREAM)
            promote(pair)
        pair.join(lost, STREAM)
    return len(lost)
