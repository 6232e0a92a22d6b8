"""The virtual environment, the lock on changing it, and what a killed installation left behind."""

import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from install.steps import EVERY, StepFailed, Steps, say

PROJECT = Path(__file__).resolve().parent.parent
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCK = VENV / ".installing"
UNFINISHED = VENV / ".unfinished"


@contextmanager
def the_only_installation(*, quiet: bool) -> Iterator[int]:
    """Hold the lock, once nobody else does; yields its file, which child processes may inherit."""
    VENV.mkdir(exist_ok=True)
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
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
def unfinished(names: set[str], repairs: set[str] | None = None) -> Iterator[set[str]]:
    """Keep on disk, until this is done, what is being installed; yields what has to be repaired.

    Of what was left before, `repairs` will be repaired by this, and no more: `names` by default.
    """
    before = left_unfinished()
    _write(UNFINISHED, "\n".join(sorted(names | before)))
    repairs = names if repairs is None else repairs
    yield before & repairs
    if rest := before - repairs - names:
        _write(UNFINISHED, "\n".join(sorted(rest)))
    else:
        UNFINISHED.unlink()


def _write(path: Path, text: str) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.rename(path)


VENV_ITSELF = ".venv"


def venv_is_there() -> bool:
    """Whether it was made, and to its end."""
    return PYTHON.exists() and VENV_ITSELF not in left_unfinished()


def make_venv(steps: Steps) -> None:
    """Make it, with pip; the remains of one that was not finished go first."""
    for path in set(VENV.iterdir()) - {LOCK}:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    try:
        with unfinished({VENV_ITSELF}):
            steps.run([sys.executable, "-m", "venv", str(VENV)])
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
