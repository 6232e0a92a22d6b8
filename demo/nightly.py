"""`python -m demo.nightly`: the process `reconciler`, which installs Spark and Java by itself.

`make fleet` starts without them, to start sooner: only a run needs them. `python -m demo.install`
installs them in the background some minutes after the start. That happens only in the .venv that
make created. A kill leaves an unfinished installation, which the next `python -m demo.install`
repairs. In all else this is `python -m analytics.nightly`.
"""

import logging
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from analytics.nightly import child
from analytics.nightly.__main__ import main
from demo.install import environment, java
from rocket_rides.process import Stop
from rocket_rides.waiting import delays

logger = logging.getLogger(__name__)

# Rides come first.
POLITELY = ("nice", "-n", "19")
FETCH = (*POLITELY, sys.executable, "-m", "demo.install", "--quiet", "nightly", "java", "archive")
AFTER_THE_START = 300.0  # seconds: not during the first rides
FOR_EVER = datetime.max.replace(tzinfo=UTC)


def install_in_the_background(stop: Stop) -> Callable[[], bool]:
    """Have a thread install what a run lacks; returns what says whether it is not over yet."""
    pauses = chain([AFTER_THE_START], delays(60, 3600))
    thread = threading.Thread(target=install, args=[stop, pauses])
    if is_wanted():
        thread.start()
    return thread.is_alive


def install(stop: Stop, pauses: Iterable[float], command: Sequence[str] = FETCH) -> None:
    """After a pause, install what a run lacks; and again, until it is there, or until `stop`."""
    for pause in pauses:
        if stop.wait(pause) or not is_wanted():  # somebody else may have installed it
            return
        logger.info("installing what only a reconciliation needs (Spark: 400 MB)")
        status = child.run(command, stop, FOR_EVER)
        if not is_wanted():
            logger.info("installed what a reconciliation needs")
        if status == 0 or stop:  # who waits for a run is told that Java could not be installed
            return
        logger.warning("what a reconciliation needs could not be installed; trying again later")


def is_wanted() -> bool:
    """Whether a run lacks something that can be installed here without asking anyone."""
    made_by_make = (environment.VENV / ".fleet").exists()
    if not (made_by_make and environment.VENV.resolve() == Path(sys.prefix).resolve()):
        return False
    lacks_java = java.can_be_installed() and not java.is_there()
    return lacks_java or not environment.is_there("nightly")


if __name__ == "__main__":
    main(install_in_the_background)
