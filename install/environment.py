"""The virtual environment, the lock on changing it, and what a killed installation left behind."""

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from install.steps import EVERY, StepFailed, Steps, say

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
UNFINISHED = VENV / ".unfinished"


@contextmanager
def the_only_installation(*, quiet: bool) -> Iterator[int]:
    """Hold the lock, once nobody else does; yields its file, which child processes may inherit."""
    VENV.mkdir(exist_ok=True)
    lock = os.open(VENV, os.O_RDONLY | os.O_CLOEXEC)  # the folder itself is what is locked
    try:
        said = -EVERY
        while not _locked(lock):
            if not quiet and time.monotonic() - said >= EVERY:
                said = time.monotonic()
                say("waiting for another installation into .venv to end")
            time.sleep(0.1)
        yield lock
    finally:
        os.close(lock)


def _locked(lock: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def left_unfinished() -> set[str]:
    """What a killed installation was at."""
    return set(UNFINISHED.read_text().split()) if UNFINISHED.exists() else set()


@contextmanager
def unfinished(new: set[str], lock: set[str]) -> Iterator[set[str]]:
    """Keep on disk, until this is done, what of the `lock` is being installed for the first time.

    Yields what an earlier one has left of this lock, and has to be repaired.
    """
    before = left_unfinished()
    _remember(before | new)
    yield before & lock
    _remember(before - lock)


def _remember(names: set[str]) -> None:
    new = UNFINISHED.with_name(f"{UNFINISHED.name}.new")
    new.write_text("\n".join(sorted(names)))
    new.rename(UNFINISHED)


def venv_is_there() -> bool:
    """Whether it was made, and to its end: the scripts that activate it come last."""
    return (VENV / "bin" / "activate").exists()


def make_venv(steps: Steps) -> None:
    """Make it, with pip; the remains of one that was not finished go first."""
    try:
        steps.run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    except StepFailed as reason:
        raise StepFailed(
            f"{reason}\nPython's venv module is needed (Debian: apt install python3-venv)"
        ) from None


def installed() -> set[str]:
    """The names of the packages that are in .venv, also of those that are there in part."""
    folders = VENV.glob("lib/python*/site-packages/*.dist-info")
    return {normal(folder.name.split("-")[0]) for folder in folders}


def normal(name: str) -> str:
    """A package's name, as any spelling of it is compared."""
    return name.lower().replace("_", "-").replace(".", "-")
