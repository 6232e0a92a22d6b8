"""Faults of the receiver of receipts: it refuses, does not answer, or is away."""

import random

from lab.chaos.deliveries import FAILURES
from lab.chaos.faults.scene import Scene, held


def fail(scene: Scene, dice: random.Random) -> str:
    """The receiver accepts no receipt for some seconds."""
    mood, seconds = dice.choice(FAILURES), dice.uniform(0.5, 4)
    receiver = scene.fleet.receiver
    with held(receiver.busy), receiver.failing(mood):
        scene.wait(seconds)
    return f"the receiver ({mood.value})"
