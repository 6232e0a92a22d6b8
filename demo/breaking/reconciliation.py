"""A reconciliation as `make reconcile` starts it: what it says, and whether it did its work."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rocket_rides.errors import Unavailable
from rocket_rides.parent_death import preexec_die_with_parent
from rocket_rides.settings import PROJECT

# Only what is missing: packages in the .venv that make has set up, and as root Debian's Java.
INSTALL = (sys.executable, "-m", "demo.install", "fleet", "nightly", "java")
RECONCILE = (sys.executable, "-m", "analytics.reconcile")
AGREED, DRIFTED = 0, 1  # how it ends when it has done its work: docs/reconciliation.md


class Printed(str):
    """A line that one of these programs printed: one of many, such as a table's."""


def require_installed() -> None:
    """Raise Unavailable where a run would first have to install something."""
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    if java is None or importlib.util.find_spec("pyspark") is None:
        raise Unavailable(
            "Spark or Java is not installed: run `make reconcile` once, which installs them"
        )


def run(say: Callable[[str], None], *, installs: bool) -> None:
    """Reconcile; `say` is told what it prints, and its status.

    Raises Unavailable if it could not.
    """
    if installs and (PROJECT / ".venv").resolve() == Path(sys.prefix).resolve():
        _run(INSTALL, say, AGREED)
    status = _run(RECONCILE, say, AGREED, DRIFTED)
    found = "drift" if status == DRIFTED else "no drift"
    say(f"The reconciliation ended with status {status}: it found {found}.")


def _run(command: tuple[str, ...], say: Callable[[str], None], *good: int) -> int:
    last = ""
    with subprocess.Popen(
        command,
        cwd=PROJECT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},  # each line at once
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        preexec_fn=preexec_die_with_parent(signal.SIGTERM),
    ) as child:
        assert child.stdout is not None  # noqa: S101 (it is a pipe)
        try:
            for line in child.stdout:
                if line.strip():
                    last = line.strip()
                    say(Printed(f"  {line.rstrip()}"))
        except BaseException:
            child.terminate()
            raise
    if child.returncode not in good:
        raise Unavailable(last or f"{' '.join(command[1:])} ended with {child.returncode}")
    return child.returncode
