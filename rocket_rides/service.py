"""Running a service: its log, its local time, its telemetry, and its end.

The rest of running a process is in `unified_log.process` and `unified_log.readers.running`.
"""

import gc
import logging
import sys
from collections.abc import Callable

from rocket_rides import logs, settings, telemetry, time_zone
from rocket_rides.settings import Settings
from unified_log.process import Stop

logger = logging.getLogger(__name__)


def configure(config: Settings, **about: str) -> None:
    """Log to stdout, settle the local time, and have the garbage collector skip all imports.

    `about` are fields of each line, in JSON. What was imported is never garbage, and looking
    through it takes some 50 ms: at the end of each process, and now and then in the middle of a
    request.
    """
    logs.configure(config.log_level, config.log_format, **about)
    if unsettled := time_zone.settle():
        logger.warning(unsettled)
    gc.freeze()


def stop_on_signals() -> Stop:
    """Becomes true on SIGTERM and SIGINT."""
    return Stop().on_signals()


def run(main: Callable[[], object]) -> None:
    """Run the process whose `main` this is. In JSON, the sentence that it ends with is an event."""
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, str):
            raise
        logs.say(end.code, logging.CRITICAL)
        sys.exit(1)


def configure_consumer(name: str, service: str = "consumer") -> tuple[Settings, Stop]:
    """Begin the process of the consumer `name`; telemetry bears the name of the `service`."""
    config = settings.load()
    configure(config, consumer=name)
    telemetry.configure(config, service)
    return config, stop_on_signals()
