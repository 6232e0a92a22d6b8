"""Faults of a handler: for a while, a total's state refuses some rides, which it must hold out."""

import random
from contextlib import closing, suppress

from lab.chaos import refusals
from lab.chaos.drifts import AWAY
from lab.chaos.faults.scene import AGAIN, Moot, Scene, moot_if_away
from lab.chaos.fleet import CONSUMERS

LONGEST = 6.0  # seconds


def refuse(scene: Scene, dice: random.Random) -> str:
    """A total refuses long rides; one that it holds out may be dropped; then all are retried."""
    name, share, seconds = dice.choice(CONSUMERS), dice.uniform(0.6, 0.98), dice.uniform(1, LONGEST)
    drops = dice.random() < 0.5
    with moot_if_away(), closing(scene.fleet.connect()) as connection:
        longest = refusals.begin(connection, name, share)
    if longest is None:
        raise Moot
    scene.wait(seconds)
    for _ in scene.tries():
        with suppress(*AWAY), closing(scene.fleet.connect()) as connection:
            if drops and refusals.drop(connection, name):
                scene.wait(AGAIN)
            retried = refusals.end(connection, name)
            return f"{name}, more than {longest} ({retried} held out)"
    return f"{name}, more than {longest}"  # `Play` ends it
