"""Postgres fails over to a streaming standby, and the old primary comes back as the standby.

Synchronous: no commit was answered that the standby did not have, so nothing may be lost.
Asynchronous: the newest commits are lost, like those that a restore undoes.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from demo.embedded.failures import ServerFailed
from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.postgres_pair import PostgresPair
from lab.chaos.restore import Restore


def synchronous(scene: Scene, dice: random.Random) -> str:
    """While the link to the standby is down, nothing is answered; then the primary crashes."""
    return _fail_over(scene, dice, waits=True)


def asynchronous(scene: Scene, dice: random.Random) -> str:
    """While the link to the standby is down, commits are answered that will be lost."""
    return _fail_over(scene, dice, waits=False)


def _fail_over(scene: Scene, dice: random.Random, *, waits: bool) -> str:
    """A new standby, some rides, a link that fails, a crash, a promotion, and the way back."""
    rewind = dice.random() < 0.5
    rides_for, behind_for, down_for = (dice.uniform(0, seconds) for seconds in (2, 1, 1))
    with _standby(scene) as pair:
        if waits:
            pair.wait_for_standby()
        scene.wait(rides_for)
        began = time.monotonic()
        pair.catch_up()
        pair.cut_off()
        scene.wait(behind_for)

        def promote() -> None:
            if not waits:
                scene.restores.append(Restore(began, time.monotonic()))
            pair.promote()
            scene.wait(down_for)
            pair.bring_back(rewind=rewind)

        pair.primary.crash(0, promote)
        pair.catch_up()
    return f"postgres (then {'rewound' if rewind else 'copied anew'})"


@contextmanager
def _standby(scene: Scene) -> Iterator[PostgresPair]:
    """A standby, which is there for as long as no restore and no other fail-over may be."""
    pair = scene.fleet.postgreses
    if not scene.restoring.acquire(blocking=False):
        raise Moot
    try:
        _attach(pair)
        yield pair
    finally:
        pair.detach()
        scene.restoring.release()


def _attach(pair: PostgresPair) -> None:
    try:
        pair.attach()
    except (ServerFailed, psycopg.Error):  # the server was down, or went down
        raise Moot from None
