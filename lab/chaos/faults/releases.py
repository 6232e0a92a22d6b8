"""A fault of an upgrade: one process of the next release among the rest.

The schema is upgraded first, as an operator would, and still serves this release. A restore may
bring the older one back, for which the process waits.
"""

import random
import signal
import sys
from contextlib import suppress

from lab.chaos.faults.scene import Moot, Scene, held
from lab.chaos.fleet import READERS, STREAMERS
from lab.processes import clean_environment, start
from lab.until import until
from rocket_rides.settings import PROJECT

VICTIMS = ("api", *STREAMERS, *READERS)
PATIENCE = 20.0  # seconds for the migration, which waits while Postgres is away


def run_the_next(scene: Scene, dice: random.Random) -> str:
    """Restart a process with the next release's code; after some seconds with this one's again."""
    name, seconds = dice.choice(VICTIMS), dice.uniform(2, 8)
    service = scene.fleet.services[name]
    with held(service.busy):
        _migrate(scene)
        service.tree = scene.fleet.next_release
        try:
            if not service.end_by(signal.SIGKILL):
                raise Moot
            scene.wait(seconds)
        finally:
            service.tree = PROJECT
            service.end_by(signal.SIGKILL)
    return name


def _migrate(scene: Scene) -> None:
    """Make sure of the next release's schema. Raises Moot where that can't be done now."""
    fleet = scene.fleet
    environment = clean_environment() | fleet.environment
    with (fleet.folder / "migrations.log").open("ab") as log:
        command = [sys.executable, "-m", "migrations"]
        migration = start(command, environment, log, fleet.next_release)
    with suppress(TimeoutError):
        until(lambda: scene.over.is_set() or migration.poll() is not None, "", PATIENCE)
    migration.kill()
    if (status := migration.wait()) == -signal.SIGKILL:
        raise Moot
    if status != 0:
        raise RuntimeError(f"a migration ended with status {status}; see its log")
