"""Installs Java with apt-get if this runs as root: Spark needs Java, and pip can't install it.

Otherwise it says what to install. Everything but the nightly job works without Java.
"""

import os

from analytics.prerequisites import require_java
from demo.install import debian
from demo.install.steps import StepFailed, Steps
from rocket_rides.errors import Unavailable

PACKAGE = "default-jre-headless (>= 2:1.17)"


def is_there() -> bool:
    """Whether this machine has a suitable Java."""
    try:
        require_java()
    except Unavailable:
        return False
    return True


def can_be_installed() -> bool:
    """Whether `install` installs it without asking."""
    return debian.can_install() and not os.environ.get("JAVA_HOME")


def install(steps: Steps) -> None:
    """Install Java, or say what to install; the next run tries again."""
    if can_be_installed():
        try:
            debian.install(steps, PACKAGE)
        except StepFailed:
            steps.note("apt-get can't install Java now, or this release only has one older than 17")
    try:
        require_java()
    except Unavailable as reason:
        steps.note(str(reason))
