"""What a total reports about its rounds, besides what every reader does."""

import logging
from decimal import localcontext

from consumers.reader import Reader
from consumers.report import Report
from consumers.round import Healed, Round
from consumers.totals.reset import Reset
from consumers.totals.total import Total
from rocket_rides.distance import EXACT

logger = logging.getLogger("consumer")


class RideByRide(Report):
    """A line for each ride, with the total that it led to, instead of one for each batch."""

    def news(self, done: Round, reader: Reader[Total]) -> None:
        """Report the gaps and the rides, in the order of the log."""
        with localcontext(EXACT):
            total = reader.projection.distance - sum(new.distance for new in done.news)
            for new in done.news:
                total += new.distance
                if isinstance(new, Healed):
                    self.healed(new)
                else:
                    logger.info("ride %8d %12s m   total %s m", new.id, new.distance, total)


def resets(done: Round, reader: Reader[Total]) -> None:
    """Report what a reset changed: somebody will want to know why the total was wrong."""
    reset = done.repair
    if not isinstance(reset, Reset):
        return
    for reconciliation in reset.superseded:
        logger.info(
            "%s: a newer reset supersedes that of reconciliation %d", reader.name, reconciliation
        )
    if reset.ahead:
        logger.warning(
            "%s was not reset by reconciliation %d, which is ahead of what the streamer has"
            " sent: was this database restored to an earlier time?",
            reader.name,
            reset.ahead,
        )
    if reset.applied:
        logger.warning(
            "%s was reset by reconciliation %d: total %s m at ride %d, was %s m at ride %d",
            reader.name,
            reset.applied.reconciliation,
            reset.applied.to_total,
            reset.applied.to_ride_id,
            reset.applied.from_total,
            reset.applied.from_ride_id,
        )
