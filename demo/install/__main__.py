"""`python -m demo.install fleet`: installs all that one part of this project needs, into .venv.

The parts are `fleet`, `nightly` (Spark and whatever else the nightly job needs), `telemetry` (what
exports to OpenTelemetry), `fast` (for the tests that need no server), `dev` (all of these, and the
tools for tests), and `java`. Whatever is already installed is left alone, silently.

When it exits with 0, the parts' packages are installed, at the locked versions and checked against
the locked hashes. Java may still be missing; unless --quiet, a line has then said what to install.
Only one runs at a time; a kill -9 ends its lock, too. uv, which may outlive it, has its own lock.
"""

import argparse
import fcntl
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from demo.install import environment
from demo.install.environment import LOCKS, VENV
from demo.install.steps import StepFailed, Steps


def left(parts: list[str]) -> dict[str, Callable[[Steps], None]]:
    """The steps that are left, by what a person is told."""
    steps: dict[str, Callable[[Steps], None]] = {}
    named = [part for part in parts if part in LOCKS]
    if named and not environment.has(*named):
        if not environment.is_sound():
            steps["creating the virtual environment, .venv"] = environment.make_venv
        steps[f"installing packages for {', '.join(named)}"] = partial(environment.install, named)
    if "java" in parts:
        from demo.install import java  # which takes a while, and which a fleet does not need

        if java.lack():
            steps["installing Java for the nightly job"] = java.install
    return steps


def wait_for_others(steps: Steps) -> None:
    """Lock the folder itself, until this process ends."""
    VENV.mkdir(exist_ok=True)
    lock = os.open(VENV, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        steps.note("waiting for another installation into .venv to finish")
        fcntl.flock(lock, fcntl.LOCK_EX)


def main() -> None:
    """Take the steps that are left, in order."""
    parser = argparse.ArgumentParser(prog="python -m demo.install")
    parser.add_argument("parts", nargs="+", choices=[*LOCKS, "java"])
    parser.add_argument("--quiet", action="store_true", help="print only what went wrong")
    arguments = parser.parse_args()
    steps = Steps(quiet=arguments.quiet)
    try:
        signal.signal(signal.SIGINT, lambda *_: sys.exit(130))  # ignored so far: demo/foreground
        if left(arguments.parts):
            wait_for_others(steps)
            for label, take in left(arguments.parts).items():
                steps.begin(label)
                take(steps)
    except (OSError, ValueError, StepFailed) as reason:  # the disk is full, or a setting is wrong
        sys.exit(str(reason).splitlines()[-1] if arguments.quiet else str(reason))


if __name__ == "__main__":
    main()
