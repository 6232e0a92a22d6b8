"""Runs the nightly job again and again during the faults, and keeps what each run said.

A run may agree, find something wrong, say that it could not run, or be killed by the nemesis.
"""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import psutil

from lab.chaos.fleet import Fleet
from lab.chaos.observer import Onlooker
from lab.processes import clean_environment, start

JOB = (sys.executable, "-m", "analytics.reconcile")
NEEDED = ("pyspark", "deltalake")
POLL = 0.05  # seconds
REST = 1.0  # seconds from the end of a run to the next
LONGEST = 300.0  # seconds that a run may take; under load it takes more than one minute
AGREED, DRIFTED, COULD_NOT_RUN = "agreed", "found something wrong", "could not run"
KILLED, FAILED = "killed", "failed"
ENDS = {0: AGREED, 1: DRIFTED, 2: COULD_NOT_RUN}
KILLS = (-signal.SIGKILL, 2)  # of a run, or of one that has lost its Java
HUNG = 124  # a status, as timeout(1) has it


def can_run() -> bool:
    """Whether Spark, delta-rs and Java are installed, which a fleet alone does not need."""
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    return java is not None and all(map(importlib.util.find_spec, NEEDED))


@dataclass
class Run:
    """A run: how it ended, its output, and its report; times are on the monotonic clock."""

    number: int
    tampered: str = ""  # what chaos had changed by hand before it
    end: str = ""
    said: str = ""
    report: dict[str, Any] = field(default_factory=dict)  # for programs; empty if it has no result
    began: float = field(default_factory=time.monotonic)
    ended: float = float("inf")

    def __str__(self) -> str:
        return f"run-{self.number}"

    @property
    def finished(self) -> bool:
        return self.end in (AGREED, DRIFTED)


class Runs(Onlooker):
    """Runs the job until `over` is set. The kernel ends a run with its thread."""

    def __init__(self, fleet: Fleet, over: threading.Event) -> None:
        super().__init__("runs")
        self.all: list[Run] = []
        self._fleet, self._over = fleet, over
        self._guard = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False

    def look_on(self) -> None:
        while not self._over.is_set():
            self.play()
            self._over.wait(REST)

    def play(
        self, options: Sequence[str] = (), tampered: str = "", settings: Mapping[str, str] = {}
    ) -> Run:
        """One run, in the calling thread; `settings` go before the fleet's."""
        run = Run(len(self.all) + 1, tampered)
        log, report = (self._fleet.folder / f"{run}.{kind}" for kind in ("log", "json"))
        status = self._run(log, [*options, "--json", str(report)], settings)
        run.end = KILLED if self._killed and status in KILLS else ENDS.get(status, FAILED)
        run.said = log.read_text(errors="replace").strip()
        with suppress(OSError, ValueError):  # whoever was killed may have written half of it
            run.report = json.loads(report.read_bytes(), parse_float=Decimal)
        run.ended = time.monotonic()
        self.all.append(run)
        return run

    def _run(self, log: Path, options: Sequence[str], settings: Mapping[str, str]) -> int:
        """The exit status, or minus the number of the signal that ended it."""
        with log.open("wb") as output, self._guard:
            self._killed = False
            environment = clean_environment() | self._fleet.environment | dict(settings)
            self._process = job = start([*JOB, *options], environment, output)
        try:
            return job.wait(LONGEST)
        except subprocess.TimeoutExpired:
            return HUNG
        finally:
            with self._guard:
                self._process = None
                with suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)  # what it left behind, such as its Java
            job.wait()

    def kill(self, *, only_java: bool) -> bool:
        """SIGKILL the run that is under way, or only its Java; False if there is none."""
        with self._guard:
            if self._process is None or self._process.poll() is not None:
                return False
            if only_java and not (javas := java_of(self._process.pid)):
                return False
            self._killed = True
            with suppress(ProcessLookupError, psutil.Error):
                if only_java:
                    for java in javas:
                        java.kill()
                else:
                    os.killpg(self._process.pid, signal.SIGKILL)
            return True

    def stop(self) -> None:
        """Kill the run, and whatever it has started."""
        while self.is_alive():
            self.kill(only_java=False)
            self.join(POLL)


def java_of(pid: int) -> list[psutil.Process]:
    """The Java of a run; empty before it has started, or while its processes change."""
    with suppress(psutil.NoSuchProcess):
        children = psutil.Process(pid).children(recursive=True)
        return [child for child in children if child.name() == "java"]
    return []


def read_warehouse(folder: Path) -> Iterator[tuple[int, Decimal]]:
    """Every ride in the warehouse, with its distance in metres, as delta-rs and Arrow read it."""
    from deltalake import DeltaTable  # a fleet does without

    rides = DeltaTable(str(folder / "rides")).to_pyarrow_table(columns=["id", "distance"])
    return zip(rides["id"].to_pylist(), rides["distance"].to_pylist(), strict=True)
