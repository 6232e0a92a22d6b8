"""Postgres is restored from a backup: later rides are lost, and their numbers are drawn again."""

import random
import time
from contextlib import closing

import psycopg

from demo.embedded.failures import ServerFailed
from lab.chaos.backup import Backup
from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.restore import Restore
from rocket_rides.errors import Unavailable

AGAIN = 0.3  # how often the previous backup is used again, so that more is lost
POLL = 0.02
PROMOTION_LIMIT = 60.0
PROMOTED = "SELECT NOT pg_is_in_recovery()"


def restore(scene: Scene, dice: random.Random) -> str:
    """A base backup, some seconds of rides, a crash, and a start from the backup.

    With recovery.signal, in a new timeline, or without it, as if nothing had happened.
    """
    again, rides_for, down_for = dice.random() < AGAIN, dice.uniform(0.5, 5), dice.uniform(0, 2)
    recovery_signal = dice.random() < 0.5
    if not scene.restoring.acquire(blocking=False):
        raise Moot
    try:
        if not again or scene.backup is None:
            _back_up(scene)
            scene.wait(rides_for)
        assert scene.backup is not None  # noqa: S101 (it was made here or earlier)
        _go_back(scene, scene.backup, down_for, recovery_signal)
    finally:
        scene.restoring.release()
    return f"postgres ({'recovery.signal' if recovery_signal else 'no signal'})"


def _back_up(scene: Scene) -> None:
    try:
        backup = scene.fleet.back_up()
    except ServerFailed:  # the server was down, or went down
        raise Moot from None
    if scene.backup:
        scene.backup.remove()
    scene.backup = backup


def _go_back(scene: Scene, backup: Backup, down_for: float, recovery_signal: bool) -> None:
    postgres = scene.fleet.postgres

    def put_back() -> None:
        scene.restores.append(Restore(backup.began, time.monotonic()))
        backup.restore(recovery_signal=recovery_signal, into=postgres.server)

    postgres.crash(down_for, put_back)
    deadline = time.monotonic() + PROMOTION_LIMIT
    while not _is_promoted(scene):
        if time.monotonic() > deadline:
            raise TimeoutError("the restored Postgres still accepts no writes")
        time.sleep(POLL)


def _is_promoted(scene: Scene) -> bool:
    """A recovering server answers before it accepts writes."""
    try:
        with closing(scene.fleet.connect()) as connection:
            return connection.execute(PROMOTED).fetchone() == (True,)
    except (psycopg.Error, Unavailable):
        return False
