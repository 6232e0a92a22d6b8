"""SIGKILL, SIGTERM, and SIGSTOP with a later SIGCONT, for services and API workers.

What died is restarted: a service by its supervisor, a worker by the API.
"""

import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.fleet import READERS, STREAMERS
from lab.chaos.service import TERM_LIMIT, Service

VICTIMS = ("api", "api worker", *STREAMERS, *READERS)
# Seconds. After two deaths of a worker within 5.5 s the API assumes a crash loop and ends.
WORKER_REST = 6.0


@contextmanager
def _victim(scene: Scene, name: str) -> Iterator[Service]:
    """The service, protected from all other faults of this family."""
    service = scene.fleet.services[name.split()[0]]
    if not service.busy.acquire(blocking=False):
        raise Moot
    try:
        yield service
    finally:
        service.busy.release()


def kill(scene: Scene, dice: random.Random) -> str:
    """SIGKILL, once or twice in a row, so that a process also dies just after its start."""
    name, again, pause = dice.choice(VICTIMS), dice.random() < 0.3, dice.uniform(0, 1.5)
    with _victim(scene, name) as service:
        if name == "api worker":
            _signal_worker(service, signal.SIGKILL, dice)
            scene.wait(WORKER_REST)
            return name
        _kill(service)
        scene.wait(pause)
        if again:
            with suppress(Moot):  # it has not restarted yet
                _kill(service)
    return name


def _kill(service: Service) -> None:
    ended = len(service.exits)
    if not service.signal(signal.SIGKILL):
        raise Moot
    service.wait_for_exits(ended + 1)


def terminate(scene: Scene, dice: random.Random) -> str:
    """SIGTERM: the process ends by itself, properly."""
    name = dice.choice(VICTIMS)
    with _victim(scene, name) as service:
        if name == "api worker":
            _signal_worker(service, signal.SIGTERM, dice)
            scene.wait(WORKER_REST)
            return name
        ended = len(service.exits)
        if not service.signal(signal.SIGTERM):
            raise Moot
        if not service.wait_for_exits(ended + 1):
            raise TimeoutError(f"{name} has not ended {TERM_LIMIT:.0f} s after SIGTERM")
    return name


def freeze(scene: Scene, dice: random.Random) -> str:
    """SIGSTOP, some seconds, SIGCONT: the process wakes up in a world that has moved on."""
    name, seconds = dice.choice(VICTIMS), dice.uniform(0.5, 5)
    with _victim(scene, name) as service:
        if name == "api worker":
            pid = _signal_worker(service, signal.SIGSTOP, dice)
            scene.wait(seconds)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            return name
        if not service.signal(signal.SIGSTOP):
            raise Moot
        scene.wait(seconds)
        service.signal(signal.SIGCONT)
    return name


def _signal_worker(service: Service, number: signal.Signals, dice: random.Random) -> int:
    workers = service.children()
    if len(workers) < 2:
        raise Moot
    pid = dice.choice(workers)
    with suppress(ProcessLookupError):
        os.kill(pid, number)
        service.workers_ended += number is not signal.SIGSTOP
    return pid
