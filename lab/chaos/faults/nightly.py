"""Faults for the nightly job: drifts that it has to find, and its death at any moment of a run."""

import random
from contextlib import closing, suppress
from functools import partial

from lab.chaos.drifts import AWAY, MINUTE, OUTCOME, TOTAL, make
from lab.chaos.faults.scene import Fault, Moot, Scene

LATEST = 15.0  # seconds until the job is killed; a run takes a minute or so


def kill(scene: Scene, dice: random.Random) -> str:
    """SIGKILL the job, or only its Java: then the job itself can still react."""
    only_java, moment = dice.random() < 0.5, dice.uniform(0, LATEST)
    if scene.runs is None:
        raise Moot
    scene.wait(moment)
    for _ in scene.tries():
        if scene.runs.kill(only_java=only_java):
            return "the job's Java" if only_java else "the job"
    raise Moot


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
