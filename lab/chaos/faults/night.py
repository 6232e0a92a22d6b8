"""The nightly job is killed, or only its Java, at any moment of a run."""

import random
import time

from lab.chaos.faults.scene import Moot, Scene

LATEST = 15.0  # seconds until the moment; a run takes about as long
PATIENCE = 10.0  # for the next run, or for its Java
POLL = 0.1


def kill(scene: Scene, dice: random.Random) -> str:
    """Both are the same to a person who looks for what a crash leaves behind; not to the job."""
    only_java, moment = dice.random() < 0.5, dice.uniform(0, LATEST)
    if scene.nights is None:
        raise Moot
    scene.wait(moment)
    deadline = time.monotonic() + PATIENCE
    while not scene.nights.kill(only_java=only_java):
        if time.monotonic() > deadline or scene.over.is_set():
            raise Moot
        scene.wait(POLL)
    return "the job's Java" if only_java else "the job"
