"""What a fleet goes on without: the live page, the reconciler, the simulator.

honcho ends all processes as soon as one ends. So an optional part that can't work does not end.
"""

import logging
import os
from collections.abc import Callable

from rocket_rides import service
from unified_log.errors import in_one_line

logger = logging.getLogger(__name__)

# honcho names each process that it starts. The process' own children inherit the name.
NAME = "HONCHO_PROCESS_NAME"
AN_HOUR = 3600.0  # seconds; any time would do


def run(part: str, main: Callable[[], int | None]) -> int | None:
    """Run `main`; in a fleet, if it can't work, say so and wait to be told to end.

    Returns what it returns. On its own, and where the settings are refused, it ends as ever.
    """
    if not os.environ.get(NAME):
        return main()
    try:
        return main()
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        reason = end.code
    except Exception as error:
        logger.exception("%s failed", part)
        reason = in_one_line(error)
    logger.warning("the fleet goes on without %s: %s", part, reason)
    stop = service.stop_on_signals()
    while not stop.wait(AN_HOUR):
        pass
    return None
