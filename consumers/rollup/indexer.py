"""The indexer: reserves dirty minutes, computes them anew from the rides, commits them.

A crash before the commit computes them again, to the same result. A minute that can't be computed
is tried again, beside the others; after ATTEMPTS it is set aside, before it leaves the Ick.
"""

import logging
from collections import Counter
from collections.abc import Sequence

import psycopg

from consumers.rollup import set_aside
from consumers.rollup.dirty import DirtyMinutes, Mark
from consumers.rollup.generation import Generation
from consumers.rollup.minutes import compute
from consumers.rollup.step import Step
from rocket_rides.database import refusal
from rocket_rides.faults import reached

logger = logging.getLogger("rollup")

AT_ONCE = 1000  # minutes
ATTEMPTS = 3
# What may be one minute's fault. A server that can't write, or that is gone, is nobody's.
POISON = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.RaiseException,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.QueryCanceled,
)


class Indexer:
    """Computes the `dirty` minutes, on `connection`, under the right of a generation."""

    def __init__(
        self, connection: psycopg.Connection, generation: Generation, dirty: DirtyMinutes
    ) -> None:
        self.computed = 0  # minutes, each as often as it was computed
        self._connection = connection
        self._generation = generation
        self._dirty = dirty
        self._attempts: Counter[str] = Counter()

    def run_once(self, marked_upto: int) -> bool:
        """Compute what is dirty; returns whether there may be more to do at once.

        All minutes of the rides up to `marked_upto` have been marked. Raises Overtaken, MarksLost,
        StateLost, redis.RedisError or psycopg.Error: then what was not committed stays dirty.
        """
        reserved = self._dirty.reserve(AT_ONCE) if self._dirty.count else []
        if reserved:
            failed = self._compute(reserved)
            reached(Step.AFTER_COMPUTING)
            self._keep(failed)
            self._dirty.commit(reserved)
            reached(Step.AFTER_COMMIT)
        again = set_aside.to_retry(self._connection)
        for mark in again:
            if reason := self._compute([mark]).get(mark):
                self._set_aside(mark, reason, 1)
        if reserved or again or marked_upto > self._generation.complete_to:
            lowest = self._dirty.lowest()
            self._generation.complete(marked_upto if lowest is None else lowest - 1)
        return len(reserved) == AT_ONCE

    def _compute(self, marks: Sequence[Mark]) -> dict[Mark, str]:
        """Compute these minutes; returns the reason for each one that could not be computed."""
        if not any(mark.minute in self._attempts for mark in marks):
            try:
                self._together(marks)
                return {}
            except POISON as error:
                if len(marks) == 1:
                    return {marks[0]: refusal(error)}
        failed = {}
        for mark in marks:
            try:
                self._together([mark])
            except POISON as error:
                failed[mark] = refusal(error)
        return failed

    def _together(self, marks: Sequence[Mark]) -> None:
        compute(self._connection, self._generation, [mark.minute for mark in marks])
        self.computed += len(marks)
        for mark in marks:
            self._attempts.pop(mark.minute, None)

    def _keep(self, failed: dict[Mark, str]) -> None:
        """Before the commit, mark these minutes again, or set them aside after some attempts."""
        for mark, reason in failed.items():
            self._attempts[mark.minute] += 1
            if self._attempts[mark.minute] < ATTEMPTS:
                self._dirty.add([mark])
            else:
                self._set_aside(mark, reason, self._attempts.pop(mark.minute))

    def _set_aside(self, mark: Mark, reason: str, attempts: int) -> None:
        with self._connection.transaction():
            self._generation.hold()
            is_new = set_aside.put(self._connection, mark, reason, attempts)
        logger.log(
            logging.WARNING if is_new else logging.DEBUG,
            "set aside minute %s: %s; python -m consumers.rollup.aside tells more",
            mark.minute,
            reason,
        )
