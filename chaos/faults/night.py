"""The nightly job runs while everything else fails, and is killed in the middle of it."""

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress

from chaos.faults.scene import Moot, Scene
from chaos.service import clean_environment
from rocket_rides.parent_death import preexec_die_with_parent
from rocket_rides.settings import PROJECT

POLL = 0.1  # seconds
# The exit statuses that any fault may lead to, and what they mean.
ENDS = {0: "agreed", 2: "could not run"}
KILLED = "killed"


def run(scene: Scene, dice: random.Random) -> str:
    """One run; half of the time it is killed before it can have ended. No total is ever wrong."""
    kill_after = dice.uniform(2, 20) if dice.random() < 0.5 else float("inf")
    if not can_run() or not scene.night.acquire(blocking=False):
        raise Moot
    try:
        end = _run(scene, kill_after)
    finally:
        scene.night.release()
    scene.nights[end] += 1
    return f"the job ({end})"


def can_run() -> bool:
    """Whether there are Spark, which a fleet does without, and a Java."""
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    return java is not None and importlib.util.find_spec("pyspark") is not None


def _run(scene: Scene, kill_after: float) -> str:
    """How it ended. What it says goes to a log of its own."""
    log = scene.fleet.folder / "night.log"
    began = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        job = subprocess.Popen(
            [sys.executable, "-m", "analytics.reconcile"],
            cwd=PROJECT,
            env=clean_environment() | scene.fleet.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=preexec_die_with_parent(),
        )
    kill_at, killed = time.monotonic() + kill_after, False
    while job.poll() is None:
        if scene.over.is_set() or time.monotonic() > kill_at:
            killed = True
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)  # with its Java
        time.sleep(POLL)
    if killed:
        return KILLED
    if job.returncode not in ENDS:
        said = log.read_bytes()[began:].decode(errors="replace").strip()
        scene.journal.troubles.append(f"the nightly job ended with {job.returncode}: {said}")
    return ENDS.get(job.returncode, "failed")
