"""Relays a run's output, so that each line is logged by the reconciler at its own level.

A run is a process of its own and writes to a pipe. Its log lines begin with their level, as
`rocket_rides.process.log_to_stdout` writes it; if that were not read, a run's WARNING would become
an INFO of the reconciler. Any other line, such as a library's, is an INFO.
"""

import logging
import re
from typing import IO

logger = logging.getLogger(__name__)

LEVEL_AND_MESSAGE = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) +(.*)")


def relay(output: IO[str]) -> None:
    """Log each line as it arrives, until the end of `output`."""
    with output:
        for line in output:
            if not (text := line.strip()):
                continue
            logged = LEVEL_AND_MESSAGE.fullmatch(text)
            level, message = logged.groups() if logged else ("INFO", text)
            logger.log(logging.getLevelNamesMapping()[level], "%s", message)
