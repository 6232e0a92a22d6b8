"""Debian's packages: whether this process may install them. With the standard library only."""

import os
import shutil


def can_install() -> bool:
    """Whether packages can be installed without asking: for root alone, where there is apt-get."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None
