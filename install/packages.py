"""The packages of a lock, by uv, which takes a fraction of pip's time; where it can't, by pip.

uv does not read pip's configuration. What that says about where packages come from is passed on.
"""

import ast
import os
import re
import subprocess
from pathlib import Path

from install.environment import PROJECT, PYTHON, VENV, installed, normal, unfinished
from install.steps import StepFailed, Steps

UV = VENV / "bin" / "uv"
UV_LOCK = PROJECT / "requirements" / "uv.txt"
PIP = (str(PYTHON), "-m", "pip", "--disable-pip-version-check")
# A lock names everything: nothing has to be asked what it needs. For Spark that takes a build.
AS_LOCKED = ("--require-hashes", "--no-deps")

# pip's options, and what uv calls them.
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
# A later one overrules an earlier one.
SECTIONS = ("global", "install", ":env:")


def names(lock: Path) -> set[str]:
    """The packages that a lock has, for whatever platform."""
    return {normal(name) for name in re.findall(r"^([\w.-]+)==", lock.read_text(), re.MULTILINE)}


def uv_is_there() -> bool:
    """Whether the locked version was installed, or could not be, so that pip does its work."""
    stamp = VENV / ".uv"
    return stamp.is_file() and stamp.read_text() == UV_LOCK.read_text()


def get_uv(steps: Steps) -> None:
    """Install it; where there is none for this machine, go on without."""
    # Whatever a killed installation left of it goes: only this one knows that it is whole.
    anew = ["--force-reinstall", "--require-hashes", "--only-binary", ":all:"]
    try:
        steps.run([*PIP, "install", *anew, "-r", str(UV_LOCK)])
    except StepFailed as reason:
        steps.note(f"{reason}\nno uv; pip does its work, and needs longer")
        UV.unlink(missing_ok=True)
    (VENV / ".uv").write_text(UV_LOCK.read_text())


def install(lock: Path, steps: Steps) -> None:
    """Install what is missing from `lock`; what a killed installation left is put there anew."""
    with unfinished(names(lock) - installed(), names(lock)) as left:
        if UV.exists():
            again = [word for name in sorted(left) for word in ("--reinstall-package", name)]
            command = [str(UV), "pip", "install", "--python", str(PYTHON), *AS_LOCKED]
            try:
                steps.run([*command, *again, "-r", str(lock)], registry(), has_a_bar=True)
            except StepFailed as reason:
                steps.note(f"{reason}\nuv can't; pip tries")
            else:
                return
        again = ["--force-reinstall"] if left else []
        steps.run([*PIP, "install", *AS_LOCKED, *again, "-r", str(lock)], has_a_bar=True)


def registry() -> dict[str, str]:
    """Where pip gets packages from, for uv's environment; what that has already, stays."""
    told = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True)
    return {
        name: value for name, value in translated(told.stdout).items() if name not in os.environ
    }


def translated(pips_configuration: str) -> dict[str, str]:
    """`pip config list`, as uv's environment."""
    found: dict[str, str] = {}
    settings = re.findall(r"^([\w:]+)\.([\w-]+)=(.*)$", pips_configuration, re.MULTILINE)
    for wanted in SECTIONS:
        for section, option, value in settings:
            if section == wanted and option in AS_UV_CALLS_IT:
                words = str(ast.literal_eval(value)).split()
                name = AS_UV_CALLS_IT[option]
                found[name] = ("," if name in IN_COMMAS else " ").join(words)
    # pip takes the best of all it finds; uv, unless told, what the first place has.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match", **found}
