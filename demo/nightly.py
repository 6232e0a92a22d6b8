"""`python -m demo.nightly`: the process `reconciler`, which installs Spark and Java by itself.

`make fleet` starts without them, to start sooner: only a run needs them. `python -m demo.install`
installs them in the background some minutes after the start, at the latest before the run. That
happens only in the .venv that make created. A kill leaves an unfinished installation, which the
next `python -m demo.install` repairs. In all else this is `python -m analytics.nightly`.
"""

import logging
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from analytics.nightly import attempts, child
from analytics.nightly.__main__ import main
from demo.install import environment, java
from rocket_rides.process import Stop

logger = logging.getLogger(__name__)

# Rides come first.
POLITELY = ("nice", "-n", "19") if shutil.which("nice") else ()
FETCH = (*POLITELY, sys.executable, "-m", "demo.install", "--quiet", "nightly", "java", "archive")


class Installer(attempts.Installer):
    """Installs what a run lacks, where that can be done without asking anyone."""

    def __init__(self, command: Sequence[str] = FETCH) -> None:
        self._command = command

    def is_wanted(self) -> bool:
        """Whether something is missing that can be installed here."""
        made_by_make = (environment.VENV / ".fleet").exists()
        if not (made_by_make and environment.VENV.resolve() == Path(sys.prefix).resolve()):
            return False
        lacks_java = java.can_be_installed() and not java.is_there()
        return lacks_java or not environment.is_there("nightly")

    def install(self, stop: Stop, until: datetime) -> None:
        """Install it, at most until `until`; logs the start and the end."""
        logger.info(
            "installing what only a reconciliation needs (Spark: 400 MB), in the background"
        )
        status = child.run(self._command, stop, until)
        if stop:
            return
        if status == 0:
            logger.info("installed what a reconciliation needs")
            return
        logger.warning(
            "what a reconciliation needs could not be installed; trying again before the next one"
        )


if __name__ == "__main__":
    main(Installer())
