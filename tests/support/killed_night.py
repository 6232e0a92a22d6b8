"""`python -m tests.support.killed_night STEP [OPTION...]`: a run that is killed at that step."""

import os
import signal
import sys
from enum import Enum

from analytics import reconcile
from unified_log.faults import listening


def die_at(name: str) -> None:
    """Run the nightly job until it reaches the step of this name."""

    def kill(step: Enum) -> None:
        if step.name == name:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.argv.pop(1)
    with listening(kill):
        reconcile.main()


if __name__ == "__main__":
    die_at(sys.argv[1])
