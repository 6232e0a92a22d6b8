"""`python -m tests.support.killed_rollup STEP`: a rollup that is killed where it reaches that step.

An injected crash is an exception, so the process cleans up; SIGKILL leaves everything as it is.
"""

import os
import signal
import sys
from enum import Enum

from consumers.rollup import __main__ as rollup
from consumers.rollup import indexer, lead, marker


def die_at(name: str) -> None:
    """Run the rollup until it reaches the step of this name, in whichever thread."""

    def reached(step: Enum) -> None:
        if step.name == name:
            os.kill(os.getpid(), signal.SIGKILL)

    for module in (lead, marker, indexer):
        module.reached = reached  # type: ignore[attr-defined]
    sys.argv[1:] = []
    rollup.main()


if __name__ == "__main__":
    die_at(sys.argv[1])
