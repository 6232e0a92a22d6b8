"""`python -m demo.nightly`: the process `reconciler`, which installs Spark and Java by itself.

`make fleet` starts without them, to start sooner: only a run needs them, and the first one has
`python -m demo.install` fetch them. That happens only in the .venv that make created. A kill leaves
an unfinished installation, which the next one repairs. In a fleet it does not end when it can't
work (`demo.optional`). In all else this is `python -m analytics.nightly`.
"""

import logging
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path

from analytics.nightly import child
from analytics.nightly.__main__ import main
from demo import optional
from demo.install import environment, java
from rocket_rides import service
from unified_log.process import Stop

logger = logging.getLogger(__name__)

# Rides come first.
POLITELY = ("nice", "-n", "19")
FETCH = (*POLITELY, sys.executable, "-m", "demo.install", "--quiet", "nightly", "java")


def install(stop: Stop, until: datetime, command: Sequence[str] = FETCH) -> None:
    """Install what a run lacks, unless `stop` or `until` comes first."""
    if is_wanted():
        logger.info("installing what only a reconciliation needs (Spark: 400 MB)")
        child.run(command, stop, until)
        if not is_wanted():
            logger.info("installed what a reconciliation needs")


def is_wanted() -> bool:
    """Whether a run lacks something that can be installed here without asking anyone."""
    honcho = environment.VENV / "bin/honcho"
    made_by_make = honcho.is_file() and honcho.read_text() == environment.HONCHO
    if not (made_by_make and environment.VENV.resolve() == Path(sys.prefix).resolve()):
        return False
    lacks_java = java.can_be_installed() and java.lack()
    return bool(lacks_java) or not environment.has("nightly")


if __name__ == "__main__":
    service.run(partial(optional.run, "the reconciler", partial(main, install)))
