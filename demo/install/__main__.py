"""`python -m demo.install fleet`: installs all that one part of this project needs, into .venv.

The parts are `fleet`, `nightly` (Spark and whatever else the nightly job needs), `telemetry` (what
exports to OpenTelemetry), `fast` (for the tests that need no server), `dev` (all of these, and the
tools for tests), and `java`. Whatever is already installed is left alone, silently.

When it exits with 0, the parts' packages are installed, at the locked versions and checked against
the locked hashes. Java may still be missing; unless --quiet, a line has then said what to install.

A crash leaves behind a part without a stamp: the next run installs that part from scratch.

Only one installation runs at a time; others wait. A kill -9 ends its lock, too; uv, which may
outlive it, has a lock of its own.
"""

import argparse
import fcntl
import os
import signal
import sys
from functools import partial

from demo.install import environment, java
from demo.install.environment import LOCKS, VENV
from demo.install.steps import Step, StepFailed, Steps

PURPOSES = {
    "fleet": "the fleet",
    "nightly": "the nightly job (Spark alone is 400 MB)",
    "telemetry": "exporting to OpenTelemetry",
    "fast": "the tests that need no server",
    "dev": "the tests, the nightly job (Spark alone is 400 MB) and the fleet",
}


def missing(parts: list[str]) -> list[Step]:
    """The steps that are left to do."""
    steps = []
    if not environment.venv_is_there():
        steps.append(Step("creating the virtual environment, .venv", environment.make_venv))
    left = [part for part in LOCKS if part in parts and not environment.is_there(part)]
    for part in ["dev"] if "dev" in left else left:
        what = f"the {len(environment.names(LOCKS[part]))} packages for {PURPOSES[part]}"
        steps.append(Step(what, partial(environment.install, part)))
    if "java" in parts and not java.is_there():
        steps.append(Step("Java for the nightly job", java.install))
    return steps


def wait_for_others(*, quiet: bool) -> None:
    """Take the lock, which is held to the end of this process."""
    VENV.mkdir(exist_ok=True)
    lock = os.open(VENV, os.O_RDONLY)  # the folder itself is what is locked
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        Steps([], quiet=quiet).note("waiting for another installation into .venv to finish")
        fcntl.flock(lock, fcntl.LOCK_EX)


def main() -> None:
    """Take the steps that are left, in order."""
    parser = argparse.ArgumentParser(prog="python -m demo.install")
    parser.add_argument("parts", nargs="+", choices=[*LOCKS, "java"])
    parser.add_argument("--quiet", action="store_true", help="print only what went wrong")
    arguments = parser.parse_args()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # see the Makefile
        if missing(arguments.parts):
            wait_for_others(quiet=arguments.quiet)
            Steps(missing(arguments.parts), quiet=arguments.quiet).take()
    except (OSError, StepFailed) as reason:  # a program is missing, or the disk is full
        sys.exit(str(reason).splitlines()[-1] if arguments.quiet else str(reason))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
