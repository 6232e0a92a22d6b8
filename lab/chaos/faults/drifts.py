"""What the nightly job is there for: something in Postgres is no longer what the rides say."""

import random
import time
from contextlib import suppress
from functools import partial

from lab.chaos.drifts import AWAY, MINUTE, OUTCOME, TOTAL
from lab.chaos.faults.scene import Fault, Moot, Scene

PATIENCE = 10.0  # seconds for a Postgres that is away, or for a victim
AGAIN = 0.5


def _make(kind: str, scene: Scene, dice: random.Random) -> str:
    """On a victim that has none which was not repaired yet."""
    deadline = time.monotonic() + PATIENCE
    while scene.drifts and time.monotonic() < deadline and not scene.over.is_set():
        with suppress(*AWAY):
            if drift := scene.drifts.make(kind, dice):
                return drift
        scene.wait(AGAIN)
    raise Moot


wrong_total: Fault = partial(_make, TOTAL)  # a millimetre too much
wrong_minute: Fault = partial(_make, MINUTE)  # a ride, or a millimetre, too much
lost_outcome: Fault = partial(_make, OUTCOME)  # of a receipt
