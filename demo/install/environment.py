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
UV_LOCK = PROJECT / "requirements" / "uv.txt"
PIP = (str(PYTHON), "-m", "pip", "--disable-pip-version-check")
# A lock is complete, so dependencies need not be resolved. For Spark that would take a build.
AS_LOCKED = ("--require-hashes", "--no-deps")

# Each part's lock. `dev` includes the others.
LOCKS = {
    part: PROJECT / "requirements" / name
    for part, name in {
        "fleet": "fleet.txt",
        "nightly": "analytics.txt",
        "fast": "fast.txt",
        "dev": "dev.txt",
    }.items()
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
    try:
        steps.run([sys.executable, "-m", "venv", "--clear", str(VENV)])
    except StepFailed as reason:
        raise StepFailed(
            f"{reason}\nPython's venv module is needed (Debian: apt install python3-venv)"
        ) from None


def uv_is_there() -> bool:
    """Whether the locked version is installed, or could not be, so that pip is used."""
    stamp = VENV / ".uv"
    return stamp.is_file() and stamp.read_text() == UV_LOCK.read_text()


def get_uv(steps: Steps) -> None:
    """Install uv, which is much faster than pip; if there is none for this machine, use pip."""
    from_scratch = ["--force-reinstall", "--require-hashes", "--only-binary", ":all:"]
    try:
        steps.run([*PIP, "install", *from_scratch, "-r", str(UV_LOCK)])
    except StepFailed as reason:
        steps.note(f"{reason}\nuv can't be installed; using pip, which is slower")
        UV.unlink(missing_ok=True)
    (VENV / ".uv").write_text(UV_LOCK.read_text())


def is_there(part: str) -> bool:
    """Whether the packages of `part` are completely installed, from the current lock."""
    return venv_is_there() and any(_is_stamped(each) for each in (part, "dev"))


def install(part: str, steps: Steps) -> None:
    """Install what `part` has and no finished part has, from scratch. Raises StepFailed."""
    stamp, wanted = VENV / f".{part}", VENV / f".{part}.txt"
    stamp.unlink(missing_ok=True)
    # What a finished part has is left alone: a fleet may be running from it.
    finished = {name for other in LOCKS if is_there(other) for name in names(LOCKS[other])}
    left = [entry for name, entry in entries(LOCKS[part]) if name not in finished]
    wanted.write_text("\n".join(left))
    if not (UV.exists() and _with_uv(wanted, steps)):
        steps.run([*PIP, "install", "--force-reinstall", *AS_LOCKED, "-r", str(wanted)])
    stamp.write_text(_digest(part))


def _with_uv(wanted: Path, steps: Steps) -> bool:
    """Whether uv could install it."""
    command = [str(UV), "pip", "install", "--python", str(PYTHON), "--reinstall", *AS_LOCKED]
    try:
        steps.run([*command, "-r", str(wanted)], sources(PIP))
    except StepFailed as reason:
        steps.note(f"{reason}\nuv failed; trying pip")
        return False
    return True


def _is_stamped(part: str) -> bool:
    stamp = VENV / f".{part}"
    return stamp.is_file() and stamp.read_text() == _digest(part)


def _digest(part: str) -> str:
    return hashlib.sha256(LOCKS[part].read_bytes()).hexdigest()
