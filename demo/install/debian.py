"""Installs Debian's packages, which root alone may do."""

import os
import shutil

from demo.install.steps import StepFailed, Steps

APT_GET = ("apt-get", "-qq", "-o", "DPkg::Lock::Timeout=60")
# `satisfy` installs nothing if the release's own package is too old.
SATISFY = ("satisfy", "--yes", "--no-install-recommends")
QUIETLY = {"DEBIAN_FRONTEND": "noninteractive"}


def can_install() -> bool:
    """Whether packages can be installed without asking: for root alone, where there is apt-get."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(steps: Steps, *packages: str) -> None:
    """Install packages, each as a dependency would name it. Raises StepFailed."""
    try:
        steps.run([*APT_GET, *SATISFY, *packages], QUIETLY)
    except StepFailed:  # the lists of packages may be old, or there may be none
        steps.run([*APT_GET, "update"], QUIETLY)
        steps.run([*APT_GET, *SATISFY, *packages], QUIETLY)
