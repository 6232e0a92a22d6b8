"""Faults of processes: SIGKILL, SIGTERM, SIGSTOP with a later SIGCONT, and wrong clocks.

A service that died is restarted by its supervisor, a worker by the API.
"""

import os
import random
import signal
from contextlib import suppress

from lab.chaos.faults.scene import Moot, Scene, held, moot_if_away
from lab.chaos.fleet import READERS, RECEIPTS, SERVERS, STREAMERS
from lab.chaos.service import Service

WORKER = "api worker"
VICTIMS = ("api", WORKER, *STREAMERS, *READERS)
# Seconds. After two deaths of a worker within 5.5 s the API assumes a crash loop and ends.
WORKER_REST = 6.0
LATEST = 15.0  # seconds until the job is killed; a run takes a minute or so
HAVE_CLOCKS = (*SERVERS, *SERVERS, "api", *STREAMERS, *READERS)
JUMPS = (45, 200, 3600, 6 * 3600)  # seconds
# A receiver refuses a webhook whose time of signing is more than five minutes off.
TOLERATED = 200


def kill(scene: Scene, dice: random.Random) -> str:
    """SIGKILL, once or twice in a row, so that a process also dies just after its start."""
    name, again, pause = dice.choice(VICTIMS), dice.random() < 0.3, dice.uniform(0, 1.5)
    service = _service(scene, name)
    with held(service.busy):
        _end(scene, name, signal.SIGKILL, dice)
        scene.wait(pause)
        if again and name != WORKER:
            service.end_by(signal.SIGKILL)  # unless it has not restarted yet
    return name


def terminate(scene: Scene, dice: random.Random) -> str:
    name = dice.choice(VICTIMS)
    with held(_service(scene, name).busy):
        _end(scene, name, signal.SIGTERM, dice)
    return name


def crash_server(name: str, scene: Scene, dice: random.Random) -> str:
    """SIGKILL Postgres or Redis; after a while it restarts, with all that it had acknowledged."""
    with moot_if_away():
        scene.fleet.pairs[name].primary.crash(dice.uniform(0, 3))
    return name


def kill_job(scene: Scene, dice: random.Random) -> str:
    """SIGKILL the nightly job, or only its Java: then the job itself can still react."""
    only_java, moment = dice.random() < 0.5, dice.uniform(0, LATEST)
    if scene.runs is None:
        raise Moot
    scene.wait(moment)
    for _ in scene.tries():
        if scene.runs.kill(only_java=only_java):
            return "the job's Java" if only_java else "the job"
    raise Moot


def freeze(scene: Scene, dice: random.Random) -> str:
    """SIGSTOP, some seconds, SIGCONT: the process goes on with what it knew before."""
    name, seconds = dice.choice(VICTIMS), dice.uniform(0.5, 5)
    with held(_service(scene, name).busy):
        pid = _pid(scene, name, dice)
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(pid, signal.SIGSTOP)
            scene.wait(seconds)
            os.kill(pid, signal.SIGCONT)
    return name


def jump_clock(scene: Scene, dice: random.Random) -> str:
    """Set a clock wrong by 45 seconds to six hours, ahead or behind, for some seconds."""
    name, ahead, seconds = dice.choice(HAVE_CLOCKS), dice.choice(JUMPS), dice.uniform(0.5, 6)
    ahead = (min(ahead, TOLERATED) if name in RECEIPTS else ahead) * dice.choice((-1, 1))
    fleet = scene.fleet
    clock = fleet.pairs[name].primary.clock if name in SERVERS else fleet.services[name].clock
    if clock is None:
        raise Moot
    with held(clock.busy):
        clock.set(ahead)
        scene.wait(seconds)
        clock.set(0)
    return f"{name} ({ahead:+} s)"


def _service(scene: Scene, name: str) -> Service:
    return scene.fleet.services[name.split()[0]]


def _end(scene: Scene, name: str, number: signal.Signals, dice: random.Random) -> None:
    service = _service(scene, name)
    if name == WORKER:
        with suppress(ProcessLookupError):
            os.kill(_pid(scene, name, dice), number)
            service.workers_ended += 1
        scene.wait(WORKER_REST)
    elif not service.end_by(number):
        raise Moot


def _pid(scene: Scene, name: str, dice: random.Random) -> int:
    """The id of the process; or of one of the API's workers, while it has two."""
    pids = _service(scene, name).pids()
    if len(pids) < (3 if name == WORKER else 1):
        raise Moot
    return dice.choice(pids[1:]) if name == WORKER else pids[0]
