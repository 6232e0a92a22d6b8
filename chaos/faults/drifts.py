"""What the nightly job is there for: something in Postgres is no longer what the rides say."""

import random
from functools import partial

from chaos.drifts import AWAY, MINUTE, OUTCOME, TOTAL
from chaos.faults.scene import Fault, Moot, Scene


def _make(kind: str, scene: Scene, dice: random.Random) -> str:
    """Unless its victim has one that was not repaired yet."""
    if scene.drifts is None:
        raise Moot
    try:
        drift = scene.drifts.make(kind, dice)
    except AWAY:
        raise Moot from None
    if drift is None:
        raise Moot
    return f"{drift.kind} {drift.victim} ({drift.mark})"


wrong_total: Fault = partial(_make, TOTAL)  # a millimetre too much
wrong_minute: Fault = partial(_make, MINUTE)  # a ride, or a millimetre, too much
lost_outcome: Fault = partial(_make, OUTCOME)  # of a receipt
