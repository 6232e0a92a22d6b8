"""Java, installed by apt-get where this runs as root, because Spark needs it and pip has none.

Elsewhere a person is told what to install, and all but the nightly job works without. Whether the
Java that is there will do, `analytics.prerequisites` says: it is asked in a process of its own,
since `install` runs before any package is there.
"""

import os
import shutil
import subprocess

from install.environment import PROJECT, PYTHON, VENV
from install.steps import StepFailed, Steps

APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60")
# `satisfy` installs nothing where the release's own Java is too old.
SATISFY = ("satisfy", "--yes", "--no-install-recommends", "default-jre-headless (>= 2:1.17)")
STAMP = VENV / ".java"


def is_there() -> bool:
    """Whether an earlier run has found a Java that will do."""
    return STAMP.exists()


def install(steps: Steps) -> None:
    """See to it that there is one, or say what to install: then again at the next run."""
    if said() and os.geteuid() == 0 and not os.environ.get("JAVA_HOME") and shutil.which("apt-get"):
        quietly = {"DEBIAN_FRONTEND": "noninteractive"}
        try:
            try:
                steps.run([*APT_GET, *SATISFY], quietly)
            except StepFailed:
                steps.run([*APT_GET, "update"], quietly)
                steps.run([*APT_GET, *SATISFY], quietly)
        except StepFailed:
            steps.note("apt-get can't get it now, or this release's is older than Java 17")
    if reason := said():
        steps.note(reason)
    else:
        STAMP.touch()


def said() -> str:
    """What is wrong with this machine's Java; nothing, when it will do."""
    command = [str(PYTHON), "-m", "analytics.prerequisites"]
    told = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    return told.stderr.strip() if told.returncode else ""
