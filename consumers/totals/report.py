"""What a total reports about its rounds, besides what every reader does."""

import logging
from decimal import localcontext

from consumers.rides import Ride
from consumers.totals.reset import Reset
from consumers.totals.total import HealedRides, Total
from rocket_rides.distance import EXACT
from unified_log.readers.reader import Reader
from unified_log.readers.report import Report
from unified_log.readers.round import Round
from unified_log.tracing import fields
from unified_log.words import count

logger = logging.getLogger("consumer")


class RideByRide(Report):
    """A line for each ride, with the total that it led to, instead of one for each batch."""

    def news(self, done: Round, reader: Reader[Total]) -> None:
        """Report the gaps and the rides, in the order of the log."""
        healed = [each for each in done.healed if isinstance(each, HealedRides)]
        news: list[Ride | HealedRides] = [*done.records, *healed]
        news.sort(key=last_ride)
        with localcontext(EXACT):
            total = reader.handler.distance - sum(new.distance for new in news)
            for new in news:
                total += new.distance
                if isinstance(new, HealedRides):
                    self.healed(new, reader.handler.RECORD)
                else:
                    about = {"ride_id": new.id, **fields([done.traces.get(new.id)])}
                    logger.info(
                        "ride %8d %12s m   total %s m", new.id, new.distance, total, extra=about
                    )


def last_ride(new: Ride | HealedRides) -> int:
    return new.gap.upto if isinstance(new, HealedRides) else new.id


def resets(done: Round, reader: Reader[Total]) -> None:
    """Report what a reset changed: somebody will want to know why the total was wrong."""
    reset = done.repair
    if not isinstance(reset, Reset):
        return
    for reconciliation in reset.superseded:
        logger.info(
            "%s: a newer reset supersedes that of reconciliation %d",
            reader.handler.name,
            reconciliation,
        )
    if reset.ahead:
        logger.warning(
            "%s was not reset by reconciliation %d, which is ahead of what the streamer has"
            " sent: was this database restored to an earlier time?",
            reader.handler.name,
            reset.ahead,
        )
    if reset.applied:
        logger.warning(
            "%s was reset by reconciliation %d: total %s m in %s at position %d,"
            " was %s m in %s at position %d",
            reader.handler.name,
            reset.applied.reconciliation,
            reset.applied.to_total,
            count(reset.applied.to_rides, "ride"),
            reset.applied.to_position,
            reset.applied.from_total,
            count(reset.applied.from_rides, "ride"),
            reset.applied.from_position,
        )
