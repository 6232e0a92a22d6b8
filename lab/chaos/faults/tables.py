"""Faults in tables: drifts, which the nightly job has to find, and rides that a total refuses."""

import random
from contextlib import closing, suppress
from functools import partial

from lab.chaos import refusals
from lab.chaos.drifts import AWAY, MINUTE, OUTCOME, TOTAL, make
from lab.chaos.faults.scene import AGAIN, Fault, Moot, Scene, moot_if_away
from lab.chaos.fleet import CONSUMERS

LONGEST = 6.0  # seconds


def _drift(kind: str, scene: Scene, dice: random.Random) -> str:
    """Make a drift on a victim that has none; wait for one, or for Postgres, if need be."""
    for _ in scene.tries() if scene.runs else ():
        with suppress(*AWAY), scene.drifting, closing(scene.fleet.connect()) as connection:
            if drift := make(connection, kind, dice):
                return drift
    raise Moot


wrong_total: Fault = partial(_drift, TOTAL)  # a millimetre too much
wrong_minute: Fault = partial(_drift, MINUTE)  # a ride, or a millimetre, too much
lost_outcome: Fault = partial(_drift, OUTCOME)  # of a receipt


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
