"""Installs Spark and Java while the fleet is running, because `make fleet` starts without them.

It does so to start sooner: only a run needs them. They are installed in the background some minutes
after the start, at the latest before the run, with `python -m demo.install`. That happens only in
the .venv that make created; elsewhere, such as in a container, what is missing stays missing. A
kill leaves an unfinished installation, which the next `python -m demo.install` repairs.
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

# Not during the first rides; and an hour before the run, which leaves time to retry.
AFTER_THE_START = timedelta(minutes=5)
BEFORE_THE_RUN = timedelta(hours=1)

# Rides come first.
POLITELY = ("nice", "-n", "19") if shutil.which("nice") else ()
FETCH = (*POLITELY, sys.executable, "-m", "demo.install", "--quiet", "nightly", "java", "archive")


def wanted(venv: Path = PROJECT / ".venv") -> bool:
    """Whether something is missing that can be installed here without asking anyone."""
    made_by_make = (venv / ".fleet").exists() and venv.resolve() == Path(sys.prefix).resolve()
    if not made_by_make:
        return False
    try:
        require_packages()
    except Unavailable:
        return True
    return is_half_there(venv / ".unfinished") or (java_can_be_installed() and not has_java())


def is_half_there(unfinished: Path) -> bool:
    """Whether an installation of Spark was killed, or is in progress."""
    try:
        named = unfinished.read_text().split()
    except FileNotFoundError:
        return False
    return not {name.replace("_", "-") for name in PACKAGES}.isdisjoint(named)


def has_java() -> bool:
    """Whether there is a suitable Java."""
    try:
        require_java()
    except Unavailable:
        return False
    return True


def fetch(stop: Stop, until: datetime, command: Sequence[str] = FETCH) -> None:
    """Install them, at most until `until`; logs the start and the end."""
    logger.info("installing what only a reconciliation needs (Spark: 400 MB), in the background")
    status = Child(command).wait(stop, until)
    if stop:
        return
    if status == 0:
        logger.info("installed what a reconciliation needs")
        return
    logger.warning(
        "what a reconciliation needs could not be installed; trying again before the next one"
    )
