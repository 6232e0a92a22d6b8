"""The indexer: computes dirty minutes anew from the rides, and says how far all are right.

It reserves the minutes with the lowest rides, computes them, and commits them, while the marker
goes on marking (`marker.py`, `dirty.py`). A minute that is marked meanwhile stays dirty, since the
computation may not have seen the new ride. The indexer works under its lead's generation, a fencing
token. After a crash before the commit minutes are computed again, to the same result.

When a batch can't be computed, the next ones are smaller, until each minute at fault is found. It
is then *quarantined*: tried by itself, after the others, one such minute in each round. After
ATTEMPTS it is set aside, and is dirty no more. Only a minute whose row is locked stays dirty for as
long as it is locked. So no minute holds up the others for long.
"""

import logging
from collections import Counter
from collections.abc import Sequence

import psycopg

from consumers.rollup import recomputations, set_aside_minutes
from consumers.rollup.dirty import DirtyMinutes, Mark
from consumers.rollup.generation import Generation
from consumers.rollup.minutes import compute
from consumers.rollup.step import RollupStep
from rocket_rides.revisions import refusal
from unified_log.faults import reached

logger = logging.getLogger("rollup")

LARGEST = 1000  # minutes in a batch
ATTEMPTS = 3
# How long a batch may take, or a minute in quarantine. Millions of rides in one minute take longer:
# such a minute gets the LONG time once before it is set aside, and each time that somebody asks.
SHORT, LONG = "5s", "60s"
# Errors that one minute's data causes; outages are not among them.
ONE_MINUTES_FAULT = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.RaiseException,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.DataCorrupted,
    psycopg.errors.IndexCorrupted,
)


class Indexer:
    """Computes the `dirty` minutes, on `connection`, under a generation."""

    def __init__(
        self, connection: psycopg.Connection, generation: Generation, dirty: DirtyMinutes
    ) -> None:
        self.connection = connection
        self.computed = 0  # minutes, each as often as it was computed
        self._generation = generation
        self._dirty = dirty
        self._size = LARGEST  # of the next batch
        # The minutes in quarantine. Those that an earlier lead set aside are among them.
        self._minutes_set_aside = {each.minute for each in set_aside_minutes.listed(connection)}
        self._attempts = Counter(dict.fromkeys(self._minutes_set_aside, ATTEMPTS))

    def run_once(self, marked_upto: int) -> bool:
        """Compute what is dirty; returns whether there may be more to do without a pause.

        All minutes of the rides up to `marked_upto` have been marked already. Raises Overtaken,
        MarksLost, StateLost, redis.RedisError or psycopg.Error: then this lead is over.
        """
        self._dirty.add(recomputations.pending(self.connection, LARGEST))
        quarantined, batch, more = [], [], False
        if self._dirty.count:
            reserved = self._dirty.reserve(self._size + len(self._attempts))
            reached(RollupStep.AFTER_RESERVATION)
            quarantined = [mark for mark in reserved if mark.minute in self._attempts]
            batch = [mark for mark in reserved if mark.minute not in self._attempts][: self._size]
        if batch:
            more = len(batch) == self._size
            more |= not self._take(batch)
        if quarantined:
            tried = self._try(min(quarantined, key=lambda mark: self._attempts[mark.minute]))
            more |= tried and len(quarantined) > 1
        again = set_aside_minutes.to_retry(self.connection)
        if again and (error := self._compute([again], LONG)):
            self._set_aside(again, refusal(error), 1)
        # Only now: whatever was marked up to `marked_upto`, and is not in there, is computed.
        lowest = self._dirty.lowest() if self._dirty.count else None
        upto = marked_upto if lowest is None else min(marked_upto, lowest - 1)
        if upto > self._generation.complete_to:
            self._generation.complete(self.connection, upto)
        return more or again is not None

    def _take(self, batch: Sequence[Mark]) -> bool:
        """Compute minutes together; returns whether they could be.

        If not, the next batch is a quarter of this one, or its only minute is quarantined.
        """
        if self._compute(batch, SHORT) is None:
            self._size = min(self._size * 2, LARGEST)
            self._commit(batch)
            return True
        self._size = max(len(batch) // 4, 1)
        if len(batch) == 1:
            self._attempts[batch[0].minute] = 1
        return False

    def _try(self, mark: Mark) -> bool:
        """Compute a quarantined minute, or set it aside; False if its row was locked."""
        minute = mark.minute
        self._attempts[minute] += 1
        is_last = self._attempts[minute] >= ATTEMPTS
        was_set_aside = minute in self._minutes_set_aside
        error = self._compute([mark], LONG if is_last and not was_set_aside else SHORT)
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return False  # it stays dirty until the lock is released, and has the LONG time then
        if error and not is_last:
            return True
        if error:
            self._minutes_set_aside.add(minute)
            self._set_aside(mark, refusal(error), 1 if was_set_aside else ATTEMPTS)
        self._commit([mark])
        return True

    def _compute(self, marks: Sequence[Mark], limit: str) -> psycopg.Error | None:
        """Compute these minutes; returns the error that one of them may have caused."""
        minutes, failed = [mark.minute for mark in marks], None
        try:
            compute(self.connection, self._generation, minutes, limit)
        except ONE_MINUTES_FAULT as error:
            failed = error
        else:
            self.computed += len(marks)
            for minute in minutes:
                self._attempts.pop(minute, None)
                self._minutes_set_aside.discard(minute)
        reached(RollupStep.AFTER_COMPUTING)
        return failed

    def _commit(self, marks: Sequence[Mark]) -> None:
        self._dirty.commit(marks)
        reached(RollupStep.AFTER_COMMIT)

    def _set_aside(self, mark: Mark, reason: str, attempts: int) -> None:
        with self.connection.transaction():
            self._generation.hold(self.connection)
            is_new = set_aside_minutes.put(self.connection, mark, reason, attempts)
            recomputations.give_up(self.connection, mark.minute)
        logger.log(
            logging.WARNING if is_new else logging.DEBUG,
            "set aside minute %s: %s; python -m consumers.rollup.set_aside list shows all",
            mark.minute,
            reason,
        )
