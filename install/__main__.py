"""`python -m install fleet`: has all that a part of this project needs, from nothing, in .venv.

The parts are `fleet`, `nightly` (Spark and what else the nightly job needs), `fast` (for the tests
that need no server), `dev` (all of that, and the tests' tools) and `java`. What is there already
is left alone, without a word.

It guarantees that each lock's packages are there, at the locked versions and checked against the
locked hashes, when it ends with 0. Java may be missing then: a line has said what to install.

A crash leaves behind the file .venv/.unfinished, which names what was being installed. The next
run does that again from its start, and touches nothing that was there before.

One installation at a time: the others wait. The programs it starts inherit its lock, so that one
that outlives it, after a kill -9, is waited for as well.
"""

import argparse
import hashlib
import sys
from functools import partial
from pathlib import Path

from install import java, packages
from install.environment import (
    PROJECT,
    VENV,
    left_unfinished,
    make_venv,
    the_only_installation,
    venv_is_there,
)
from install.steps import Step, StepFailed, Steps

# Each part's lock, and what its packages are for. `dev` holds the others.
LOCKS = {
    "fleet": ("fleet.txt", "the fleet"),
    "nightly": ("analytics.txt", "the nightly job (Spark alone is 400 MB)"),
    "fast": ("fast.txt", "the tests that need no server"),
    "dev": ("dev.txt", "the tests, the nightly job (Spark alone is 400 MB) and the fleet"),
}


def lock(part: str) -> Path:
    """The file that names the packages of `part`."""
    return PROJECT / "requirements" / LOCKS[part][0]


def lock_digest(part: str) -> str:
    """What identifies the lock of `part`, for its stamp in .venv."""
    return hashlib.sha256(lock(part).read_bytes()).hexdigest()


def is_there(part: str) -> bool:
    """Whether the packages of `part` have been installed, whole, from the lock as it is now."""
    stamps = {name: VENV / f".{name}" for name in (part, "dev")}
    stamped = any(s.is_file() and s.read_text() == lock_digest(name) for name, s in stamps.items())
    return venv_is_there() and stamped and not left_unfinished() & packages.names(lock(part))


def install(part: str, steps: Steps) -> None:
    """Install the packages of `part`, and remember that."""
    packages.install(lock(part), steps)
    (VENV / f".{part}").write_text(lock_digest(part))


def missing(parts: list[str]) -> list[Step]:
    """The steps that are left to do."""
    steps = []
    if not venv_is_there():
        steps.append(Step("making the virtual environment, .venv", make_venv))
    left = [part for part in LOCKS if part in parts and not is_there(part)]
    if left and not packages.uv_is_there():
        steps.append(Step("getting uv, which installs faster than pip", packages.get_uv))
    for part in ["dev"] if "dev" in left else left:
        what = f"the {len(packages.names(lock(part)))} packages for {LOCKS[part][1]}"
        steps.append(Step(what, partial(install, part)))
    if "java" in parts and not java.is_there():
        steps.append(Step("Java for the nightly job", java.install))
    return steps


def main() -> None:
    """Do what is missing, one step after the other."""
    parser = argparse.ArgumentParser(prog="python -m install")
    parser.add_argument("parts", nargs="+", choices=[*LOCKS, "java"])
    parser.add_argument("--quiet", action="store_true", help="say only what went wrong")
    arguments = parser.parse_args()
    try:
        if missing(arguments.parts):
            with the_only_installation(quiet=arguments.quiet) as held:
                Steps(missing(arguments.parts), held, quiet=arguments.quiet).take()
    except StepFailed as reason:
        sys.exit(str(reason).splitlines()[-1] if arguments.quiet else str(reason))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
