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

from install import java, packages
from install.environment import (
    PROJECT,
    VENV,
    left_unfinished,
    make_venv,
    the_only_installation,
    venv_is_there,
)
from install.steps import Failed, Step, Steps

# Each part's lock, what its packages are for, and the parts whose locks it holds.
LOCKS = {
    "fleet": ("fleet.txt", "the fleet", ()),
    "nightly": ("analytics.txt", "the nightly job (Spark alone is 400 MB)", ()),
    "fast": ("fast.txt", "the tests that need no server", ()),
    "dev": (
        "dev.txt",
        "the tests, the nightly job (Spark alone is 400 MB) and the fleet",
        ("fleet", "nightly", "fast"),
    ),
}


def digest(part: str) -> str:
    """What identifies the lock of `part`, for its stamp in .venv."""
    return hashlib.sha256((PROJECT / "requirements" / LOCKS[part][0]).read_bytes()).hexdigest()


def is_there(part: str) -> bool:
    """Whether the packages of `part` have been installed, whole, from the lock as it is now."""
    stamp = VENV / f".{part}"
    if not venv_is_there() or not stamp.is_file() or stamp.read_text() != digest(part):
        return False
    return not left_unfinished() & packages.names(PROJECT / "requirements" / LOCKS[part][0])


def install(part: str, steps: Steps) -> None:
    """Install the packages of `part`, and remember that."""
    lock, _, held = LOCKS[part]
    packages.install(PROJECT / "requirements" / lock, steps)
    for name in (part, *held):
        (VENV / f".{name}").write_text(digest(name))


def missing(parts: list[str]) -> list[Step]:
    """The steps that are left to do."""
    found = []
    if not venv_is_there():
        found.append(Step("making the virtual environment, .venv", make_venv))
    locks = [part for part in LOCKS if part in parts and not is_there(part)]
    if "dev" in locks:
        locks = ["dev"]
    if locks and not packages.uv_is_there():
        found.append(Step("getting uv, which installs faster than pip", packages.get_uv))
    for part in locks:
        lock, purpose, _ = LOCKS[part]
        count = len(packages.names(PROJECT / "requirements" / lock))
        found.append(Step(f"the {count} packages for {purpose}", partial(install, part)))
    if "java" in parts and not java.is_there():
        found.append(Step("Java for the nightly job", java.install))
    return found


def main() -> None:
    """Do what is missing, one step after the other."""
    parser = argparse.ArgumentParser(prog="python -m install")
    parser.add_argument("parts", nargs="+", choices=[*LOCKS, "java"])
    parser.add_argument("--quiet", action="store_true", help="say only what went wrong")
    arguments = parser.parse_args()
    try:
        if missing(arguments.parts):
            with the_only_installation(quiet=arguments.quiet) as lock:
                Steps(missing(arguments.parts), lock, quiet=arguments.quiet).take()
    except Failed as reason:
        sys.exit(str(reason).splitlines()[-1] if arguments.quiet else str(reason))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
