"""Reads a run's log lines, so that each is logged here at its own level and under one process.

A run is a process of its own and writes to a pipe. Its lines begin with their level, as
`rocket_rides.process.log_to_stdout` writes it; without reading that, a run's WARNING would be an
INFO of the reconciler's. All else, such as a library's words, is an INFO.
"""

import logging
import re
from typing import IO

logger = logging.getLogger(__name__)

LEVEL_AND_MESSAGE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) +(.*)")


def relay(output: IO[str]) -> None:
    """Log the lines as they come, until the end of `output`."""
    with output:
        for line in output:
            if not (text := line.strip()):
                continue
            logged = LEVEL_AND_MESSAGE.fullmatch(text)
            level, message = logged.groups() if logged else ("INFO", text)
            logger.log(logging.getLevelNamesMapping()[level], "%s", message)
