"""Postgres fails over to a streaming standby, and the old primary never comes back.

Synchronous: no commit was answered that the standby did not have, so nothing may be lost.
Asynchronous: the newest commits are lost, like those that a restore undoes.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

from lab.chaos.faults.scene import Scene, held, moot_if_away
from lab.chaos.postgres_pair import PostgresPair
from lab.chaos.restore import Restore


def synchronous(scene: Scene, dice: random.Random) -> str:
    """While the link to the standby is down, nothing is answered; then the primary crashes."""
    return _fail_over(scene, dice, waits=True)


def asynchronous(scene: Scene, dice: random.Random) -> str:
    """While the link to the standby is down, commits are answered that will be lost."""
    return _fail_over(scene, dice, waits=False)


def _fail_over(scene: Scene, dice: random.Random, *, waits: bool) -> str:
    """A new standby, some rides, a link that fails, a crash, and a promotion."""
    rides_for, behind_for = dice.uniform(0, 2), dice.uniform(0, 1)
    with _standby(scene) as pair:
        if waits:
            pair.wait_for_standby()
        scene.wait(rides_for)
        began = time.monotonic()
        pair.catch_up()
        pair.cut_off()
        scene.wait(behind_for)

        def promote() -> None:
            behind = Restore(began, time.monotonic(), by_failover=True)
            (scene.in_vain if waits else scene.restores).append(behind)
            pair.promote()

        pair.primary.crash(0, promote, for_good=True)
    return f"postgres (after {behind_for:.1f} s without a link)"


@contextmanager
def _standby(scene: Scene) -> Iterator[PostgresPair]:
    """A standby, which is there for as long as no restore and no other fail-over may be."""
    pair = scene.fleet.postgreses
    with held(pair.busy):
        try:
            with moot_if_away():
                pair.attach()
            yield pair
        finally:
            pair.detach()
