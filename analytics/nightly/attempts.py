"""One night's reconciliation: a run, retried while it can't do its work."""

import logging
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from signal import Signals
from time import localtime, strftime

from analytics.nightly import child
from analytics.prerequisites import require_java, require_packages
from analytics.reconcile import AGREED, COULD_NOT_RUN, DRIFTED
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Stop
from unified_log.waiting import delays

logger = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 60.0, 3600.0  # seconds
TO_END = timedelta(minutes=1)  # for a run to end in, before the next one is due
# A long sleep would not notice that the machine was suspended, or that the clock was set.
LOOK_AT_THE_CLOCK = 30.0

# Such as when the machine has no memory for a process, or our Python is being replaced.
NOT_STARTED = (OSError, subprocess.SubprocessError)

Install = Callable[[Stop, datetime], None]


def run_with_retries(
    command: Sequence[str],
    until: datetime,
    stop: Stop,
    first_pause: float,
    install: Install,
) -> None:
    """Run `command`; retry with back-off while it can't do its work, but not past `until`.

    Each attempt begins with `install`, which may install what a run lacks.
    """
    said = ""
    for pause in delays(first_pause, LONGEST_PAUSE):
        try:
            install(stop, until)
        except NOT_STARTED as error:
            logger.warning("nothing can be installed: %s", in_one_line(error))
        lack = what_is_lacking()
        if stop or (not lack and run_once(command, stop, until) != COULD_NOT_RUN):
            return
        if lack and lack != said:
            logger.warning("can't reconcile the rides: %s", lack)
        said = lack
        again = datetime.now(UTC) + timedelta(seconds=pause)
        if again >= until:
            return
        logger.info("trying again at %s", strftime("%H:%M:%S", localtime(again.timestamp())))
        wait_until(again, stop)


def wait_until(moment: datetime, stop: Stop) -> None:
    """Wait until `moment`, or until told to stop."""
    while not stop and (left := (moment - datetime.now(UTC)).total_seconds()) > 0:
        stop.wait(min(left, LOOK_AT_THE_CLOCK))


def run_once(command: Sequence[str], stop: Stop, until: datetime) -> int | None:
    """Run `command`, at most until `until`; log and return its status, or None after `stop`."""
    try:
        status = child.run(command, stop, until)
    except NOT_STARTED as error:
        logger.warning("the reconciliation could not start: %s", in_one_line(error))
        return COULD_NOT_RUN
    if stop:
        return None
    if status == AGREED:
        logger.info("reconciled")
    elif status == DRIFTED:
        logger.warning("reconciled: not everything agrees, see above")
    elif status == COULD_NOT_RUN:
        logger.warning("the reconciliation could not run")  # it has just logged why
    else:
        how = f"was killed by {Signals(-status).name}" if status < 0 else f"ended with {status}"
        logger.error("the reconciliation %s", how)
    return status


def what_is_lacking() -> str:
    """Why a run could not start Spark; empty if it could."""
    try:
        require_packages()
        require_java()
    except Unavailable as reason:
        return str(reason)
    except Exception as error:  # such as a package that is half there
        return f"{type(error).__name__}: {in_one_line(error)}"
    return ""
