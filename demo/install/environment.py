"""The virtual environment, .venv, and the packages in it.

An installation that has finished leaves a stamp, the digest of its lock. Whatever no stamp covers
may have been half installed by one that was killed, so it is installed from scratch.
"""

import hashlib
import re
import sys
from pathlib import Path

from demo.install.sources import sources
from demo.install.steps import StepFailed, Steps

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
REQUIREMENTS = PROJECT / "requirements"
UV_LOCK = REQUIREMENTS / "uv.txt"
PIP = (str(PYTHON), "-m", "pip", "--disable-pip-version-check")
WITH_PIP = (*PIP, "install", "--force-reinstall")

# Each part's lock. `dev` includes the others.
LOCKS = {
    "fleet": REQUIREMENTS / "fleet.txt",
    "nightly": REQUIREMENTS / "analytics.txt",
    "telemetry": REQUIREMENTS / "telemetry.txt",
    "fast": REQUIREMENTS / "fast.txt",
    "dev": REQUIREMENTS / "dev.txt",
}


def entries(lock: Path) -> list[tuple[str, str]]:
    """What a lock says of each package, after its name; for all platforms."""
    found = re.finditer(r"^([\w.-]+)==.*(?:\n .*)*", lock.read_text(), re.MULTILINE)
    return [(entry[1], entry[0]) for entry in found]


def names(lock: Path) -> set[str]:
    """The names of the packages in a lock."""
    return {name for name, _ in entries(lock)}


def venv_is_there() -> bool:
    """Whether it was created completely: the activation scripts are written last."""
    return (VENV / "bin" / "activate").exists()


def make_venv(steps: Steps) -> None:
    """Create it, with pip, after clearing the remains of an unfinished one. Raises StepFailed."""
    steps.run([sys.executable, "-m", "venv", "--clear", str(VENV)])


def is_there(part: str) -> bool:
    """Whether the packages of `part` are completely installed, from the current lock."""
    return venv_is_there() and any(_is_stamped(each, LOCKS[each]) for each in (part, "dev"))


def install(part: str, steps: Steps) -> None:
    """Install what `part` has and no finished part has, from scratch. Raises as Steps.run does.

    By uv, where there is one for this machine: it is much faster than pip.
    """
    wanted = VENV / f".{part}.txt"
    _stamp(part).unlink(missing_ok=True)
    # What a finished part has is left alone: a fleet may be running from it.
    finished = {name for other in LOCKS if is_there(other) for name in names(LOCKS[other])}
    left = [entry for name, entry in entries(LOCKS[part]) if name not in finished]
    wanted.write_text("\n".join(left))
    # A lock is complete, so dependencies need not be resolved. For Spark that would take a build.
    as_locked = ["--require-hashes", "--no-deps", "-r", str(wanted)]
    try:
        if not _is_stamped("uv", UV_LOCK):
            steps.run([*WITH_PIP, "--require-hashes", "--only-binary", ":all:", "-r", str(UV_LOCK)])
            _stamp("uv").write_text(_digest(UV_LOCK))
        with_uv = [str(UV), "pip", "install", "--python", str(PYTHON), "--reinstall"]
        steps.run([*with_uv, *as_locked], sources(PIP))
    except (OSError, StepFailed) as reason:
        steps.note(f"{reason}\nuv failed; trying pip")
        steps.run([*WITH_PIP, *as_locked])
    _stamp(part).write_text(_digest(LOCKS[part]))


def _stamp(part: str) -> Path:
    return VENV / f".{part}"


def _is_stamped(part: str, lock: Path) -> bool:
    stamp = _stamp(part)
    return stamp.is_file() and stamp.read_text() == _digest(lock)


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
