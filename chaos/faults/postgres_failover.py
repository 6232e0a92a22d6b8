"""Postgres fails over to a streaming standby, and the old primary comes back as the standby.

Synchronous: no commit was answered that the standby did not have, so nothing may be lost.
Asynchronous: the newest commits are lost, like those that a restore undoes.
"""

import random
import time

import psycopg

from chaos.faults.scene import Moot, Scene
from chaos.postgres_pair import PostgresPair
from chaos.restore import Restore
from embedded.failures import ServerFailed


def fail_over(scene: Scene, dice: random.Random) -> str:
    """A base backup becomes a standby; the link to it fails, then the primary; it is promoted.

    While the link is down, an asynchronous primary answers commits that will be lost, and a
    synchronous one answers none.
    """
    synchronous, rewind = dice.random() < 0.5, dice.random() < 0.5
    rides_for, behind_for, down_for = (dice.uniform(0, seconds) for seconds in (2, 1, 1))
    pair = scene.fleet.postgreses
    if not scene.restoring.acquire(blocking=False):
        raise Moot
    try:
        _attach(pair)
        if synchronous:
            pair.wait_for_standby()
        scene.wait(rides_for)
        began = time.monotonic()
        pair.catch_up()
        pair.cut_off()
        scene.wait(behind_for)

        def meanwhile() -> None:
            if not synchronous:
                scene.restores.append(Restore(began, time.monotonic(), by_failover=True))
            pair.promote()
            scene.wait(down_for)
            pair.bring_back(rewind=rewind)

        pair.primary.crash(0, meanwhile)
        pair.catch_up()
    finally:
        pair.detach()
        scene.restoring.release()
    way = "synchronous" if synchronous else "asynchronous"
    return f"postgres ({way}, {'rewound' if rewind else 'copied anew'})"


def _attach(pair: PostgresPair) -> None:
    try:
        pair.attach()
    except (ServerFailed, psycopg.Error):  # the server was down, or went down
        raise Moot from None
