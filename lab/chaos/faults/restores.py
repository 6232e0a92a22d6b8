"""Postgres is restored from a backup: later rides are lost, and their numbers are drawn again."""

import random
import time

from lab.chaos.backup import Backup
from lab.chaos.faults.scene import Scene, held, moot_if_away
from lab.chaos.postgres_pair import ask
from lab.chaos.restore import Restore
from lab.chaos.until import until

AGAIN = 0.3  # how often the previous backup is used again, so that more is lost
PROMOTED = "SELECT NOT pg_is_in_recovery()"


def restore(scene: Scene, dice: random.Random) -> str:
    """A base backup, some seconds of rides, a crash, and a start from the backup.

    With recovery.signal, in a new timeline, or without it, as if nothing had happened.
    """
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
