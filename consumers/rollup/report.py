"""What the rollup says of its rounds, for a person."""

import logging
import time

from consumers.rollup.generation import NAME
from consumers.rollup.lead import Lead
from unified_log.readers import report
from unified_log.readers.gaps import HealedSum
from unified_log.readers.round import Round
from unified_log.tracing import MOST_NAMED, Trace, fields
from unified_log.words import count

logger = logging.getLogger("rollup")

EVERY = 10.0  # seconds


class Report:
    """The log lines of the rollup, over all of its leads."""

    def __init__(self) -> None:
        self._log = report.Report(NAME)
        self._rides = self._minutes = 0
        self._before: Lead | None = None
        self._due = 0.0
        self._traces: list[Trace] = []  # of the rides since the last line

    def __call__(self, done: Round, lead: Lead) -> None:
        """Report what a round met in the log, and now and then what was rolled up."""
        self._log.entries(done)
        gaps, healed = HealedSum.of(done.healed)
        if gaps or healed:  # a last piece of a gap may have no ride
            logger.info(
                "%s marked %s that the log had lost%s",
                NAME,
                count(healed, "ride"),
                f", in {count(gaps, 'gap')}" if gaps else "",  # a piece of a gap is not counted
            )
        self._traces = [*self._traces, *done.traces.values()][:MOST_NAMED]
        rides, minutes = lead.marker.marked, lead.indexer.computed
        if lead is not self._before:
            self._before, self._rides, self._minutes = lead, 0, 0
        if minutes > self._minutes and time.monotonic() >= self._due:
            logger.info(
                "%s marked, %s computed; complete up to position %d",
                count(rides - self._rides, "ride"),
                count(minutes - self._minutes, "minute"),
                lead.generation.complete_to,
                extra=fields(self._traces),
            )
            self._traces = []
            self._rides, self._minutes = rides, minutes
            self._due = time.monotonic() + EVERY
