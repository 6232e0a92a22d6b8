"""A reconciliation as `make reconcile` starts it: what it says, and whether it did its work."""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys

from demo.breaking.saying import Kind, Say
from rocket_rides.errors import Unavailable
from rocket_rides.parent_death import preexec_die_with_parent
from rocket_rides.settings import PROJECT

AGREED, DRIFTED = 0, 1  # how it ends when it has done its work: docs/reconciliation.md


def require_installed() -> None:
    """Raise Unavailable where a run would first have to install something."""
    java = shutil.which("java") or os.environ.get("JAVA_HOME")
    if java is None or importlib.util.find_spec("pyspark") is None:
        raise Unavailable(
            "Spark or Java is not installed: run `make reconcile` once, which installs them"
        )


def run(say: Say) -> None:
    """Reconcile; `say` is told what it prints, and its status. Raises Unavailable if it could not.

    In the thread that starts it: it ends with that.
    """
    last = ""
    with subprocess.Popen(
        [sys.executable, "-m", "analytics.reconcile"],
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
                    say(f"  {line.rstrip()}", Kind.PRINTED)
        except BaseException:
            child.terminate()
            raise
    if child.returncode not in (AGREED, DRIFTED):
        raise Unavailable(last or f"a reconciliation ended with {child.returncode}")
    found = "drift" if child.returncode == DRIFTED else "no drift"
    say(f"The reconciliation ended with status {child.returncode}: it found {found}.")
