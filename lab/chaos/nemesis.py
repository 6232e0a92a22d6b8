"""The nemesis: injects faults, which may overlap, as its seed determines.

The seed decides the whole plan: which faults, when, on what and for how long. Which transaction or
batch they hit depends on the machine: the same seed gives the same plan, not the same run.
"""

import itertools
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from lab.chaos.faults import FAULTS
from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.trace.recording import Struck
from unified_log.errors import in_one_line

EVERY = 1.5  # average seconds from the start of one fault to the start of the next
AT_A_TIME = 100  # at the most
TURNS = 0.75  # of the run: within this share, each kind has come once, on average
# Kinds after which the recording begins another life of the database.
REPLACE_POSTGRES = {
    *("postgres-restore", "postgres-freeze"),
    *("postgres-sync-failover", "postgres-async-failover"),
}


class Planned(NamedTuple):
    at: float  # seconds from the start
    kind: str
    dice: random.Random  # for all else


def plan(seed: int, seconds: float, kinds: Sequence[str], every: float) -> Iterator[Planned]:
    """Faults of all `kinds`, each as often as the others; in a short run, each once on average."""
    dice, at = random.Random(seed), 0.0
    pause = min(every, TURNS * seconds / len(kinds))
    for round_ in itertools.count():
        for kind in dice.sample(kinds, len(kinds)):
            at += dice.expovariate(1 / pause)
            if at > seconds:
                return
            yield Planned(at, kind, random.Random(f"{seed}/{round_}/{kind}"))


class Nemesis(threading.Thread):
    """Carries out the plan, each fault in its own thread, and writes the `journal`."""

    def __init__(self, scene: Scene, faults: Iterator[Planned], journal: Path) -> None:
        super().__init__(name="nemesis", daemon=True)
        self.struck: list[Struck] = []
        self.moot: set[str] = set()  # kinds
        self.failures: list[str] = []
        self._scene, self._plan = scene, faults
        self._journal = journal.open("w")
        self._guard = threading.Lock()

    def run(self) -> None:
        start = time.monotonic()
        with ThreadPoolExecutor(AT_A_TIME) as under_way:
            for fault in self._plan:
                self._scene.wait(start + fault.at - time.monotonic())
                if self._scene.over.is_set():
                    break
                under_way.submit(self._inject, fault)

    def end(self) -> None:
        """End the plan; return when all faults are undone. It may be called twice."""
        self._scene.over.set()
        if self.ident:
            self.join()
        self._journal.close()

    def _inject(self, fault: Planned) -> None:
        self._note(f"{fault.kind} ...")
        began = time.monotonic()
        try:
            hit = FAULTS[fault.kind](self._scene, fault.dice)
        except Moot:
            self.moot.add(fault.kind)
            self._note(f"{fault.kind}: moot")
        except Exception as error:  # a finding: with a fault half injected, the run proves nothing
            self.failures.append(f"{fault.kind}: {in_one_line(error)}")
            self._note(f"{fault.kind}: failed: {in_one_line(error)}")
        else:
            self.struck.append(Struck(fault.kind, began, time.monotonic()))
            self._note(f"{fault.kind} of {hit}: over")

    def _note(self, line: str) -> None:
        with self._guard:
            self._journal.write(f"{time.strftime('%H:%M:%S')} {line}\n")
            self._journal.flush()
