"""Whoever receives the receipts fails: with an answer, without one, or by not being there."""

import random

from lab.chaos.deliveries import FAILURES
from lab.chaos.faults.scene import Scene, held


def fail(scene: Scene, dice: random.Random) -> str:
    """For some seconds no receipt is taken."""
    mood, seconds = dice.choice(FAILURES), dice.uniform(0.5, 4)
    receiver = scene.fleet.receiver
    with held(receiver.busy), receiver.failing(mood):
        scene.wait(seconds)
    return f"the receiver ({mood.value})"
