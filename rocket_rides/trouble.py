"""What keeps spans and metrics from being exported: told now and then, and no more."""

import logging
import time

logger = logging.getLogger("telemetry")

TELL_EVERY = 60.0  # seconds


class Trouble(logging.Handler):
    """Says that nothing is exported, and why: once a minute at most; and when it works again.

    The SDK's own log comes here, too: it repeats itself, with tracebacks. So make this before the
    SDK is imported, which already logs something.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._due = 0.0
        self._told = False
        of_sdk = logging.getLogger("opentelemetry")
        of_sdk.addHandler(self)
        of_sdk.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        self.failed(" ".join(record.getMessage().split()))

    def failed(self, why: str) -> None:
        now = time.monotonic()
        if now >= self._due:
            self._due, self._told = now + TELL_EVERY, True
            logger.warning("spans and metrics are lost: %s", why)

    def worked(self) -> None:
        if self._told:
            self._told = False
            logger.info("spans and metrics are exported again")
