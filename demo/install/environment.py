"""The virtual environment, the lock for changing it, and the traces of a killed installation."""

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from demo.install.steps import EVERY, StepFailed, Steps, say

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
UNFINISHED = VENV / ".unfinished"


@contextmanager
def the_only_installation(*, quiet: bool) -> Iterator[int]:
    """Wait for the lock and hold it; yields its descriptor, which child processes may inherit."""
    VENV.mkdir(exist_ok=True)
    lock = os.open(VENV, os.O_RDONLY | os.O_CLOEXEC)  # the folder itself is what is locked
    try:
        said = -EVERY
        while not _locked(lock):
            if not quiet and time.monotonic() - said >= EVERY:
                said = time.monotonic()
                say("waiting for another installation into .venv to finish")
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
    """The packages that a killed installation was installing."""
    return set(UNFINISHED.read_text().split()) if UNFINISHED.exists() else set()


@contextmanager
def unfinished(new: set[str], lock: set[str]) -> Iterator[set[str]]:
    """Record the `new` packages on disk until they are installed.

    Yields the packages of `lock` that an earlier installation left unfinished, to be repaired.
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
    """Whether it was created completely: the activation scripts are written last."""
    return (VENV / "bin" / "activate").exists()


def make_venv(steps: Steps) -> None:
    """Create it, with pip, after clearing the remains of an unfinished one."""
    try:
        steps.run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    except StepFailed as reason:
        raise StepFailed(
            f"{reason}\nPython's venv module is needed (Debian: apt install python3-venv)"
        ) from None


def installed() -> set[str]:
    """The names of the packages in .venv, including partly installed ones."""
    folders = VENV.glob("lib/python*/site-packages/*.dist-info")
    return {normal(folder.name.split("-")[0]) for folder in folders}


def normal(name: str) -> str:
    """A package's name in the form in which all its spellings are equal."""
    return name.lower().replace("_", "-").replace(".", "-")
