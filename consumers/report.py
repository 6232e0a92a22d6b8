"""What a consumer says of its rounds, for a person."""

import logging
from collections import Counter
from decimal import Decimal

from consumers.digest import Unbelieved
from consumers.reset import Reset
from consumers.round import Healed, Position, Round
from rocket_rides.terms import NO_TERM

logger = logging.getLogger("consumer")

TERMS_NAMED = 100
# All are counted, and only the first of a term is spoken of.
IF_MORE_COME = "If unbelieved_entries in GET /consumers goes on rising,"


class Named:
    """The terms that were spoken of, up to a number: a stranger may make one up for each entry."""

    def __init__(self) -> None:
        self._terms: set[bytes] = set()

    def unnamed(self, found: Counter[bytes]) -> int:
        """How many entries have a term that was not named before; it is from now on."""
        new = [term for term in found if term not in self._terms]
        new = new[: TERMS_NAMED - len(self._terms)]
        self._terms.update(new)
        return sum(found[term] for term in new)


class Report:
    """The lines of the consumer `name`, in all of its sessions; `each_ride` gets one, if wanted."""

    def __init__(self, name: str, *, each_ride: bool) -> None:
        self._name = name
        self._each_ride = each_ride
        self._foreign = Named()
        self._uncommitted = Named()

    def round(self, done: Round, before: Decimal, at: Position) -> None:
        """Say what a round did, from the total `before` to where the consumer stands now."""
        self._found(done, before)
        for letter in done.dead:
            logger.warning(
                "%s set aside entry %s: %s", self._name, letter.entry.redis_id, letter.reason
            )
        if done.rewound:
            logger.warning(
                "%s: the log was wiped or restored; reading it again from its start", self._name
            )
        if done.reset:
            self._reset(done.reset)
        if done.found and not self._each_ride:
            counted = rides(len(done.found))
            logger.info("%s up to %d, total %s m", counted, at.ride_id, at.total)
        if done.skipped:
            logger.info("skipped %s sent again", rides(done.skipped))
        self._unbelieved(done.unbelieved)

    def _found(self, done: Round, total: Decimal) -> None:
        for found in done.found:
            total += found.distance
            if isinstance(found, Healed):
                logger.warning(
                    "%s healed a gap in the log: %s, %s m, from ride %d to %d",
                    self._name,
                    rides(found.rides),
                    found.distance,
                    found.gap.after + 1,
                    found.gap.upto,
                )
            elif self._each_ride:
                logger.info("ride %8d %12s m   total %s m", found.id, found.distance, total)

    def _unbelieved(self, unbelieved: Unbelieved) -> None:
        """Once for each term: what goes on being written under it is only counted."""
        uncommitted = unbelieved.uncommitted.copy()
        without_term = uncommitted.pop(NO_TERM, 0)
        if foreign := self._foreign.unnamed(unbelieved.foreign):
            logger.warning(
                "%s skipped %s of another database's, or of a past that this one has lost. %s"
                " another database writes to this stream: give it a STREAM_NAME of its own",
                self._name,
                entries(foreign),
                IF_MORE_COME,
            )
        if without_term and self._foreign.unnamed(Counter({NO_TERM: without_term})):
            logger.warning(
                "%s skipped %s without a term, as the version before wrote them. %s"
                " another fleet writes to this stream: give it a STREAM_NAME of its own",
                self._name,
                entries(without_term),
                IF_MORE_COME,
            )
        if skipped := self._uncommitted.unnamed(uncommitted):
            logger.info(
                "%s skipped %s that the streamer sent and never committed: harmless after a"
                " change of lead, or a restore. %s an old primary still writes to this stream",
                self._name,
                entries(skipped),
                IF_MORE_COME,
            )

    def _reset(self, reset: Reset) -> None:
        """Say what a reset changed: somebody will want to know why the total was wrong."""
        for reconciliation in reset.superseded:
            logger.info(
                "%s: a newer reset supersedes that of reconciliation %d", self._name, reconciliation
            )
        if reset.ahead:
            logger.warning(
                "%s was not reset by reconciliation %d, which is ahead of what the streamer has"
                " sent: was this database restored to an earlier time?",
                self._name,
                reset.ahead,
            )
        if reset.applied:
            logger.warning(
                "%s was reset by reconciliation %d: total %s m at ride %d, was %s m at ride %d",
                self._name,
                reset.applied.reconciliation,
                reset.applied.to_total,
                reset.applied.to_ride_id,
                reset.applied.from_total,
                reset.applied.from_ride_id,
            )


def rides(count: int) -> str:
    """A number of rides, in words."""
    return "1 ride" if count == 1 else f"{count} rides"


def entries(count: int) -> str:
    """A number of entries, in words."""
    return "1 entry" if count == 1 else f"{count} entries"
