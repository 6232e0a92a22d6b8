"""Spark and Java are installed while the fleet is up, because `make fleet` starts without them.

It does so to start sooner: only a run needs them. This installs them in the background some minutes
after the start, at the latest before the run, by running `python -m install`. That happens only in
the .venv that make has made; elsewhere, as in a container, what is missing stays missing. A kill
leaves a half-made installation, which the next `python -m install` repairs.
"""

import logging
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from analytics.nightly.child import Child
from analytics.prerequisites import (
    PACKAGES,
    java_can_be_installed,
    require_java,
    require_packages,
)
from rocket_rides.errors import Unavailable
from rocket_rides.process import Stop
from rocket_rides.settings import PROJECT

logger = logging.getLogger(__name__)

# The first rides come first; an hour before the night there is time to try again.
AFTER_THE_START = timedelta(minutes=5)
BEFORE_THE_RUN = timedelta(hours=1)

# Whoever rides goes first.
POLITELY = ("nice", "-n", "19") if shutil.which("nice") else ()
FETCH = (*POLITELY, sys.executable, "-m", "install", "--quiet", "nightly", "java")


def wanted(venv: Path = PROJECT / ".venv") -> bool:
    """Whether something is missing that can be installed here without asking."""
    made_by_make = (venv / ".fleet").exists() and venv.resolve() == Path(sys.prefix).resolve()
    if not made_by_make:
        return False
    try:
        require_packages()
    except Unavailable:
        return True
    return is_half_there(venv / ".unfinished") or (java_can_be_installed() and not has_java())


def is_half_there(unfinished: Path) -> bool:
    """Whether an installation of Spark was killed, or is under way."""
    if not unfinished.exists():
        return False
    return not {name.replace("_", "-") for name in PACKAGES}.isdisjoint(
        unfinished.read_text().split()
    )


def has_java() -> bool:
    """Whether there is one that will do."""
    try:
        require_java()
    except Unavailable:
        return False
    return True


def fetch(stop: Stop, until: datetime, command: Sequence[str] = FETCH) -> None:
    """Install it, no longer than `until`; says so, and when it can't be done."""
    logger.info("installing what only a reconciliation needs (Spark: 400 MB), in the background")
    status = Child(command).wait(stop, until)
    if stop or status == 0:
        return
    logger.warning(
        "what a reconciliation needs could not be installed; it is tried again before one"
    )
