"""Installs Chromium and its driver with apt-get if this runs as root, for the browser's tests.

Otherwise it says what to install. Without them those tests are skipped.
"""

import shutil

from demo.install import debian
from demo.install.steps import StepFailed, Steps

# By Debian's names, which the tests look for, and the packages that have them.
PROGRAMS = {"chromium": "chromium", "chromedriver": "chromium-driver"}


def is_there() -> bool:
    """Whether this machine has both."""
    return all(shutil.which(program) for program in PROGRAMS)


def install(steps: Steps) -> None:
    """Install them, or say what to install; the next run tries again."""
    if debian.can_install():
        try:
            debian.install(steps, *PROGRAMS.values())
        except StepFailed:
            steps.note("apt-get can't install Chromium now")
    if not is_there():
        steps.note(
            "Chromium and its driver are needed, for the browser's tests only"
            f" (Debian: apt install {' '.join(PROGRAMS.values())})"
        )
