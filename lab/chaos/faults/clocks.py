"""The clock of one process is wrong for a while: it jumps, and jumps back."""

import random

from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.fleet import READERS, RECEIPTS, STREAMERS

SERVERS = ("postgres", "redis")
VICTIMS = (*SERVERS, *SERVERS, "api", *STREAMERS, *READERS)
JUMPS = (45, 200, 3600, 6 * 3600)  # seconds
# A receiver refuses a webhook that is signed more than five minutes ago, or later than now.
TOLERATED = 200


def jump(scene: Scene, dice: random.Random) -> str:
    """Some minutes or hours forward or back, for some seconds."""
    name, ahead, seconds = dice.choice(VICTIMS), dice.choice(JUMPS), dice.uniform(0.5, 6)
    ahead = (min(ahead, TOLERATED) if name in RECEIPTS else ahead) * dice.choice((-1, 1))
    clock = scene.fleet.clock(name)
    if clock is None or not clock.busy.acquire(blocking=False):
        raise Moot
    try:
        clock.set(ahead)
        scene.wait(seconds)
    finally:
        clock.set(0)
        clock.busy.release()
    return f"{name} ({ahead:+} s)"
