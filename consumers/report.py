"""What a consumer says of its rounds, for a person."""

import logging
from collections import Counter
from decimal import Decimal

from consumers.digest import Unbelieved
from consumers.reset import Reset
from consumers.round import Healed, Position, Round

logger = logging.getLogger("consumer")

TERMS_NAMED = 10  # a stranger may make up a new term for each entry


class Report:
    """The lines of the consumer `name`, in all of its sessions; `each_ride` gets one, if wanted."""

    def __init__(self, name: str, *, each_ride: bool) -> None:
        self._name = name
        self._each_ride = each_ride
        self._terms_named: set[bytes] = set()

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
        if foreign := self._unnamed(unbelieved.foreign):
            logger.warning(
                "%s skipped %s of another database's, or of a past that this one has lost."
                " If more come, another database writes to this stream: give it a STREAM_NAME"
                " of its own",
                self._name,
                entries(foreign),
            )
        if uncommitted := self._unnamed(unbelieved.uncommitted):
            logger.info(
                "%s skipped %s that their leader never committed, or that this database has lost",
                self._name,
                entries(uncommitted),
            )

    def _unnamed(self, found: Counter[bytes]) -> int:
        """How many entries have a term that was not named before; it is from now on."""
        new = [term for term in found if term not in self._terms_named]
        room = TERMS_NAMED - len(self._terms_named)
        self._terms_named.update(new[:room])
        return sum(found[term] for term in new[:room])

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
