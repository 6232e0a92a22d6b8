"""`python -m demo.install fleet`: installs all that one part of this project needs, into .venv.

The parts are `fleet`, `nightly` (Spark and whatever else the nightly job needs), `fast` (for the
tests that need no server), `dev` (all of these, and the tools for tests), `java`, `archive` (with
which Spark starts sooner), `browser` (for the tests that look at the live page), and `stock` (for
those on the distribution's own servers). Whatever is already installed is left alone, silently.

When it exits with 0, each lock's packages are installed, at the locked versions and checked against
the locked hashes. Java, the browser and stock servers may still be missing; then a line has said
what to install.

A crash leaves behind the file .venv/.unfinished, which names the packages that were being
installed. The next run installs those again from scratch and touches no others.

Only one installation runs at a time; others wait. The programs that it starts inherit its lock, so
the others also wait for a program that outlives it after a kill -9.
"""

import argparse
import hashlib
import sys
from functools import partial
from pathlib import Path

from demo.install import archive, browser, java, packages, stock
from demo.install.environment import (
    PROJECT,
    VENV,
    left_unfinished,
    make_venv,
    the_only_installation,
    venv_is_there,
)
from demo.install.steps import Step, StepFailed, Steps

# Each part's lock, and what its packages are for. `dev` includes the others.
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
    """The digest of `part`'s lock, for its stamp in .venv."""
    return hashlib.sha256(lock(part).read_bytes()).hexdigest()


def is_there(part: str) -> bool:
    """Whether the packages of `part` are completely installed, from the current lock."""
    stamps = {name: VENV / f".{name}" for name in (part, "dev")}
    stamped = any(s.is_file() and s.read_text() == lock_digest(name) for name, s in stamps.items())
    return venv_is_there() and stamped and not left_unfinished() & packages.names(lock(part))


def install(part: str, steps: Steps) -> None:
    """Install the packages of `part`, and record it in .venv."""
    packages.install(lock(part), [lock(other) for other in LOCKS if is_there(other)], steps)
    (VENV / f".{part}").write_text(lock_digest(part))


def missing(parts: list[str]) -> list[Step]:
    """The steps that are left to do."""
    steps = []
    if not venv_is_there():
        steps.append(Step("creating the virtual environment, .venv", make_venv))
    left = [part for part in LOCKS if part in parts and not is_there(part)]
    if left and not packages.uv_is_there():
        steps.append(Step("getting uv, which installs faster than pip", packages.get_uv))
    for part in ["dev"] if "dev" in left else left:
        what = f"the {len(packages.names(lock(part)))} packages for {LOCKS[part][1]}"
        steps.append(Step(what, partial(install, part)))
    if "java" in parts and not java.is_there():
        steps.append(Step("Java for the nightly job", java.install))
    if "archive" in parts and not archive.is_there():
        steps.append(Step("an archive of Java's classes: Spark starts sooner", archive.install))
    if "browser" in parts and not browser.is_there():
        steps.append(Step("Chromium for the browser's tests", browser.install))
    if "stock" in parts and stock.missing():
        steps.append(Step("PostgreSQL and Redis for the tests on stock servers", stock.install))
    return steps


def main() -> None:
    """Take the steps that are left, in order."""
    parser = argparse.ArgumentParser(prog="python -m demo.install")
    parser.add_argument("parts", nargs="+", choices=[*LOCKS, "java", "archive", "browser", "stock"])
    parser.add_argument("--quiet", action="store_true", help="print only what went wrong")
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
