"""The clock of one process is wrong for a while: it jumps, and jumps back."""

import random
import time

from lab.chaos.clocks import Jump
from lab.chaos.faults.scene import Moot, Scene, held
from lab.chaos.fleet import READERS, RECEIPTS, SERVERS, STREAMERS

VICTIMS = (*SERVERS, *SERVERS, "api", *STREAMERS, *READERS)
JUMPS = (45, 200, 3600, 6 * 3600)  # seconds
# A receiver refuses a webhook that is signed more than five minutes ago, or later than now.
TOLERATED = 200


def jump(scene: Scene, dice: random.Random) -> str:
    """Some minutes or hours forward or back, for some seconds."""
    name, ahead, seconds = dice.choice(VICTIMS), dice.choice(JUMPS), dice.uniform(0.5, 6)
    ahead = (min(ahead, TOLERATED) if name in RECEIPTS else ahead) * dice.choice((-1, 1))
    fleet = scene.fleet
    clock = fleet.pairs[name].primary.clock if name in SERVERS else fleet.services[name].clock
    if clock is None:
        raise Moot
    with held(clock.busy):
        began = time.monotonic()
        clock.set(ahead)
        scene.wait(seconds)
        clock.set(0)
        if name == "postgres":
            scene.jumps.append(Jump(began, time.monotonic(), ahead))
    return f"{name} ({ahead:+} s)"
