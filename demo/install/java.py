"""Installs Java with apt-get if this runs as root: Spark needs Java, and pip can't install it.

Otherwise it says what to install. Everything but the nightly job works without Java.
"""

import os
import shutil
from contextlib import suppress

from analytics.prerequisites import OLDEST_JAVA, require_java
from demo.install.steps import StepFailed, Steps
from rocket_rides.errors import Unavailable

APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60")
# `satisfy` installs nothing if the release's own package is too old.
PACKAGE = f"default-jre-headless (>= 2:1.{OLDEST_JAVA})"
SATISFY = ("satisfy", "--yes", "--no-install-recommends", PACKAGE)


def is_there() -> bool:
    """Whether this machine has a suitable Java."""
    with suppress(Unavailable):
        require_java()
        return True
    return False


def can_be_installed() -> bool:
    """Whether `install` installs it without asking: for root, where JAVA_HOME names no other."""
    return os.geteuid() == 0 and bool(shutil.which("apt-get")) and not os.environ.get("JAVA_HOME")


def install(steps: Steps) -> None:
    """Install Java, or say what to install; the next run tries again."""
    for command in (SATISFY, ["update"], SATISFY) if can_be_installed() else ():
        if not is_there():
            with suppress(StepFailed):
                steps.run([*APT_GET, *command], {"DEBIAN_FRONTEND": "noninteractive"})
    try:
        require_java()
    except Unavailable as reason:
        if can_be_installed():
            steps.note("apt-get can't install Java now, or this release only has an older one")
        steps.note(str(reason))
