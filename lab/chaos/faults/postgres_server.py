"""Postgres is restored from a backup, or fails over to a streaming standby; it may be frozen first.

A restore, or a fail-over to an asynchronous standby that lags, loses later rides, whose numbers are
drawn again. A fail-over to a synchronous one must lose nothing. The old primary never comes back.
"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from lab.chaos.backup import Backup
from lab.chaos.evidence import Restore
from lab.chaos.faults.scene import Fault, Scene, held, moot_if_away
from lab.chaos.postgres_pair import PostgresPair, ask
from lab.until import until

AGAIN = 0.3  # how often the previous backup is restored again, so that more is lost
PROMOTED = "SELECT NOT pg_is_in_recovery()"


def restore(scene: Scene, dice: random.Random) -> str:
    """A base backup, some rides, a crash, and a start from it, in a new timeline or the old one."""
    again, rides_for, down_for = dice.random() < AGAIN, dice.uniform(0.5, 5), dice.uniform(0, 2)
    recovery_signal, name = dice.random() < 0.5, f"{dice.getrandbits(32):x}"
    with held(scene.fleet.postgreses.busy):
        postgres = scene.fleet.postgres
        if not again or scene.backup is None:
            with moot_if_away():
                backup = Backup(postgres, name)
            if scene.backup:
                scene.backup.remove()
            scene.backup = backup
            scene.wait(rides_for)
        backup = scene.backup

        def put_back() -> None:
            scene.restores.append(Restore(backup.began, time.monotonic()))
            backup.restore(recovery_signal=recovery_signal, into=postgres)

        postgres.crash(down_for, put_back)
        # A recovering server answers before it accepts writes.
        until(lambda: ask(postgres, PROMOTED), "the restored Postgres still accepts no writes")
    return f"postgres ({'recovery.signal' if recovery_signal else 'no signal'})"


@contextmanager
def _standby(scene: Scene, *, waits: bool) -> Iterator[PostgresPair]:
    """In the block there is a new standby, but no restore and no other fail-over."""
    pair = scene.fleet.postgreses
    with held(pair.busy), ExitStack() as undoing:
        undoing.callback(pair.detach)
        with moot_if_away():
            pair.attach()
        if waits:
            pair.wait_for_standby()
        yield pair


def _fail_over(scene: Scene, dice: random.Random, *, waits: bool) -> str:
    """A standby, rides, a cut link, a crash, a promotion; unless it `waits`, commits are lost."""
    rides_for, behind_for = dice.uniform(0, 2), dice.uniform(0, 1)
    with _standby(scene, waits=waits) as pair:
        scene.wait(rides_for)
        began = time.monotonic()
        pair.catch_up()
        pair.cut_off()
        scene.wait(behind_for)

        def promote() -> None:
            if not waits:
                scene.restores.append(Restore(began, time.monotonic()))
            pair.promote()

        pair.primary.crash(0, promote, for_good=True)
    return "postgres"


def freeze(scene: Scene, dice: random.Random) -> str:
    """The primary is frozen, and its synchronous standby is promoted.

    The frozen one's kernel goes on acknowledging. It is killed some seconds after the promotion.
    """
    rides_for, before, after = dice.uniform(0, 2), dice.uniform(0, 3), dice.uniform(2, 8)
    with _standby(scene, waits=True) as pair:
        scene.wait(rides_for)
        pair.catch_up()

        def take_over() -> None:
            scene.wait(before)
            pair.promote()
            scene.wait(after)

        pair.primary.hang(take_over)
    return "postgres"


synchronous: Fault = partial(_fail_over, waits=True)
asynchronous: Fault = partial(_fail_over, waits=False)
