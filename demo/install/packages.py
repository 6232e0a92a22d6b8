"""Installs the packages of a lock with uv, which is much faster than pip; if uv can't, with pip.

uv does not read pip's configuration, so what that says about package sources is passed on to uv.
"""

import ast
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from demo.install.environment import PROJECT, PYTHON, VENV, installed, normal, unfinished
from demo.install.steps import StepFailed, Steps

UV = VENV / "bin" / "uv"
UV_LOCK = PROJECT / "requirements" / "uv.txt"
PIP = (str(PYTHON), "-m", "pip", "--disable-pip-version-check")
# A lock is complete, so dependencies need not be resolved. For Spark that would take a build.
AS_LOCKED = ("--require-hashes", "--no-deps")

# pip's options, and uv's names for them.
AS_UV_CALLS_IT = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
}
IN_COMMAS = {"UV_FIND_LINKS"}
# Later sections override earlier ones.
SECTIONS = ("global", "install", ":env:")


def names(lock: Path) -> set[str]:
    """The names of the packages in a lock, for all platforms."""
    return {normal(name) for name in re.findall(r"^([\w.-]+)==", lock.read_text(), re.MULTILINE)}


def uv_is_there() -> bool:
    """Whether the locked version is installed, or could not be, so that pip is used."""
    stamp = VENV / ".uv"
    return stamp.is_file() and stamp.read_text() == UV_LOCK.read_text()


def get_uv(steps: Steps) -> None:
    """Install uv; if there is none for this machine, go on without it."""
    # Replaces whatever a killed installation left of it, which may be incomplete.
    anew = ["--force-reinstall", "--require-hashes", "--only-binary", ":all:"]
    try:
        steps.run([*PIP, "install", *anew, "-r", str(UV_LOCK)])
    except StepFailed as reason:
        steps.note(f"{reason}\nuv can't be installed; using pip, which is slower")
        UV.unlink(missing_ok=True)
    (VENV / ".uv").write_text(UV_LOCK.read_text())


def missing(lock: Path, complete: Iterable[Path]) -> set[str]:
    """The packages of `lock` that have yet to be installed.

    What the `complete` locks name, and is not installed, is for other platforms.
    """
    return names(lock) - installed() - {name for other in complete for name in names(other)}


def install(lock: Path, complete: Iterable[Path], steps: Steps) -> None:
    """Install what is missing from `lock`; reinstall what a killed installation left.

    The `complete` locks are those that are wholly installed.
    """
    with unfinished(missing(lock, complete), names(lock)) as left:
        if UV.exists():
            again = [word for name in sorted(left) for word in ("--reinstall-package", name)]
            command = [str(UV), "pip", "install", "--python", str(PYTHON), *AS_LOCKED]
            try:
                steps.run([*command, *again, "-r", str(lock)], registry(), has_a_bar=True)
            except StepFailed as reason:
                steps.note(f"{reason}\nuv failed; trying pip")
            else:
                return
        again = ["--force-reinstall"] if left else []
        steps.run([*PIP, "install", *AS_LOCKED, *again, "-r", str(lock)], has_a_bar=True)


def registry() -> dict[str, str]:
    """pip's package sources as variables for uv, except those that are already set."""
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True)
    return {
        name: value for name, value in translated(listed.stdout).items() if name not in os.environ
    }


def translated(pips_configuration: str) -> dict[str, str]:
    """The output of `pip config list`, as variables for uv."""
    variables: dict[str, str] = {}
    settings = re.findall(r"^([\w:]+)\.([\w-]+)=(.*)$", pips_configuration, re.MULTILINE)
    for wanted in SECTIONS:
        for section, option, value in settings:
            if section == wanted and option in AS_UV_CALLS_IT:
                words = str(ast.literal_eval(value)).split()
                name = AS_UV_CALLS_IT[option]
                variables[name] = ("," if name in IN_COMMAS else " ").join(words)
    # pip takes the best match of all sources; uv by default takes the first source's.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **variables}
