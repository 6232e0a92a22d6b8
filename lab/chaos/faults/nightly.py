"""What the nightly job is there for, and what may happen to it.

Something in Postgres is no longer what the rides say; and the job is killed at any moment of a run.
"""

import random
import time
from contextlib import suppress
from functools import partial

from lab.chaos.drifts import AWAY, MINUTE, OUTCOME, TOTAL
from lab.chaos.faults.scene import Fault, Moot, Scene

LATEST = 15.0  # seconds until the job is killed, wherever its run, of up to a minute, is then
PATIENCE = 10.0  # seconds for the next run, for its Java, for Postgres, or for a victim
AGAIN = 0.1


def kill(scene: Scene, dice: random.Random) -> str:
    """The job, or only its Java.

    Both are the same to a person who looks for what a crash leaves behind; not to the job.
    """
    only_java, moment = dice.random() < 0.5, dice.uniform(0, LATEST)
    if scene.nights is None:
        raise Moot
    scene.wait(moment)
    deadline = time.monotonic() + PATIENCE
    while not scene.nights.kill(only_java=only_java):
        if time.monotonic() > deadline or scene.over.is_set():
            raise Moot
        scene.wait(AGAIN)
    return "the job's Java" if only_java else "the job"


def _drift(kind: str, scene: Scene, dice: random.Random) -> str:
    """On a victim that has none which was not repaired yet."""
    deadline = time.monotonic() + PATIENCE
    while scene.drifts and time.monotonic() < deadline and not scene.over.is_set():
        with suppress(*AWAY):
            if drift := scene.drifts.make(kind, dice):
                return drift
        scene.wait(AGAIN)
    raise Moot


wrong_total: Fault = partial(_drift, TOTAL)  # a millimetre too much
wrong_minute: Fault = partial(_drift, MINUTE)  # a ride, or a millimetre, too much
lost_outcome: Fault = partial(_drift, OUTCOME)  # of a receipt
