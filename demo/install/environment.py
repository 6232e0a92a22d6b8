"""The virtual environment, .venv, and the packages in it. Both are judged by trying them."""

import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import DEVNULL, Popen

from demo.install.steps import StepFailed, Steps, without_others

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
# Each part's lock, in requirements. `dev` includes the others.
LOCKS = {part: f"{part}.txt" for part in ("fleet", "telemetry", "fast", "dev", "uv")}
LOCKS["nightly"] = "analytics.txt"
PYTHON = (f"{VENV}/bin/python", "-I")
# Whether it has pip, which would take a while to import, and is that of this folder.
IS_OURS = """import os, sys; from importlib.machinery import PathFinder
sys.exit(not (PathFinder.find_spec("pip") and os.path.samefile(sys.prefix, sys.argv[1])))"""
# A lock is complete, so dependencies need not be resolved. For Spark that would take a build.
LOCKED = ("--require-hashes", "--no-deps")
PIP = (*PYTHON, "-m", "pip", "--disable-pip-version-check", "install", *LOCKED)
UV = (f"{VENV}/bin/uv", "pip", "install", "--python", PYTHON[0], *LOCKED)
CHECK = (*UV, "--check", "--offline", "--cache-dir", f"{VENV}/.cache")
HONCHO = (PROJECT / "demo/launcher").read_text()  # this project's own, which reads .env as all do


def is_sound(*checks: Sequence[str]) -> bool:
    """Whether .venv's Python starts, has pip, and was made for this folder: no copy of another."""
    made = VENV / "pyvenv.cfg"  # its last line is the command that made it
    is_ours = made.is_file() and made.read_text().rstrip().endswith(f" {VENV}")
    return is_ours and _succeed((*PYTHON, "-c", IS_OURS, str(VENV)), *checks)


def has(*parts: str) -> bool:
    """Whether a sound .venv has uv, and the packages of these parts, at the locked versions."""
    honcho = VENV / "bin/honcho"
    is_ours = honcho.is_file() and honcho.read_text() == HONCHO
    return is_ours and not _halves() and is_sound((*CHECK, *_locks("uv", *parts)))


def make_venv(steps: Steps) -> None:
    """Create it, with pip, after clearing the remains of another. Raises StepFailed."""
    if not find_spec("ensurepip"):
        package = f"python3.{sys.version_info.minor}-venv"
        raise StepFailed(f"{sys.executable} lacks ensurepip (Debian: apt install {package})")
    if VENV.is_symlink():  # to what may be another project's
        raise StepFailed(f"{VENV} leads to {VENV.resolve()}, which is not cleared: remove the link")
    steps.run([sys.executable, "-I", "-m", "venv", "--clear", str(VENV)])


def install(parts: Sequence[str], steps: Steps) -> None:
    """Install what .venv lacks, and leave the rest alone: a fleet may be running from it.

    Raises as `Steps.run` does. uv is much faster than pip.
    """
    from demo.install import sources  # which takes a while, and is seldom needed

    for half in _halves():
        shutil.rmtree(half)
    configured = sources.settings([*PYTHON, "-m", "pip"])
    try:
        steps.run([*PIP, "--only-binary", ":all:", *_locks("uv")], configured)
        steps.run([*UV, *_locks(*parts)], configured)
    except (OSError, StepFailed) as reason:
        steps.note(f"{reason}\nuv failed; trying pip")
        steps.run([*PIP, *_locks(*parts)], configured)
    shutil.copy(PROJECT / "demo/launcher", VENV / "bin/honcho")
    if not has(*parts):
        raise StepFailed(f"all seems to be installed, but is not in {VENV}")


def _locks(*parts: str) -> list[str]:
    return [f"--requirement={PROJECT}/requirements/{LOCKS[part]}" for part in parts]


def _halves() -> list[Path]:
    # pip and uv write a package's INSTALLER after all else of it.
    packages = VENV.glob("lib/python*/site-packages/*.dist-info")
    return [package for package in packages if not (package / "INSTALLER").exists()]


def _succeed(*commands: Sequence[str]) -> bool:
    env = without_others()
    try:
        running = [Popen(each, env=env, stdout=DEVNULL, stderr=DEVNULL) for each in commands]
    except OSError:
        return False
    return {each.wait() for each in running} == {0}
