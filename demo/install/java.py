"""Installs Java with apt-get if this runs as root: Spark needs Java, and pip can't install it.

Otherwise it says what to install. Everything but the nightly job works without Java.
"""

import os
import shutil
from contextlib import suppress

from analytics.prerequisites import OLDEST_JAVA, require_java
from demo.install.steps import StepFailed, Steps
from unified_log.errors import Unavailable

APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60")
# `satisfy` installs nothing if the release's own package is too old.
PACKAGE = f"default-jre-headless (>= 2:1.{OLDEST_JAVA})"
SATISFY = ("satisfy", "--yes", "--no-install-recommends", PACKAGE)


def lack() -> str:
    """What this machine lacks, or nothing if it has a suitable Java."""
    try:
        require_java()
    except Unavailable as reason:
        return str(reason)
    return ""


def can_be_installed() -> bool:
    """Whether `install` installs it without asking: for root, where JAVA_HOME names no other."""
    return os.geteuid() == 0 and bool(shutil.which("apt-get")) and not os.environ.get("JAVA_HOME")


def install(steps: Steps) -> None:
    """Install Java, or say what to install; the next run tries again."""
    for command in (SATISFY, ["update"], SATISFY) if can_be_installed() else ():
        if lack():
            with suppress(StepFailed):
                steps.run([*APT_GET, *command], {"DEBIAN_FRONTEND": "noninteractive"})
    if reason := lack():
        if can_be_installed():
            steps.note("apt-get can't install Java now, or this release only has an older one")
        steps.note(reason)
