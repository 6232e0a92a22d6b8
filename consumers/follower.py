"""Following the log from a checkpoint: what was read, whether it can be believed, what is missing.

A reader is whoever reads the log, and what becomes of a batch is up to its kind: the class `Reader`
counts each ride once, in one transaction with the checkpoint; `rollup.marker` marks the minutes
that the rides fall into.
"""

import time
from abc import ABC, abstractmethod
from typing import Any, LiteralString

import psycopg

from consumers.checkpoint import Checkpoint, Position
from consumers.committing import Committing
from consumers.digest import Bounds, Digest, digest
from consumers.round import Round
from rocket_rides.database import LAST_DRAWN
from rocket_rides.log import START, Entry, Log, as_numbers
from rocket_rides.terms import UNLESS_KNOWN, StateLost, Terms

REST = 2  # times what a round took, for a reader that is behind
LONGEST_REST = 0.1  # seconds: a round may also have waited for a lock
WAITED = 0.001  # seconds: a read that takes longer has waited for an entry
SMALLEST_BATCH = 100  # entries, after which there is a rest: a full batch of one means nothing

# One statement, so one snapshot. Sent in every round: looking for a repair costs no extra trip.
# {{…}} is filled in for each kind of reader, in `__init__`.
BOUNDS = f"""
    SELECT last_sent_id, ({LAST_DRAWN}), {UNLESS_KNOWN}, {{repair_is_due}} FROM streamer_state
"""  # noqa: S608


class Follower(ABC):
    """Follows `log` from a checkpoint on the same `connection`.

    `repair_is_due` is an SQL condition that each kind supplies; its parameters are %(name)s and
    `parameters`.
    """

    at: Position
    behind = False  # whether there may be more to take at once

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        checkpoint: Checkpoint,
        batch_size: int,
        repair_is_due: LiteralString = "false",
        **parameters: str,
    ) -> None:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self.name = checkpoint.name
        self._connection = connection
        self._log = log
        self._batch_size = batch_size
        self._parameters: dict[str, Any] = parameters | {"name": self.name}
        self._bounds_statement = BOUNDS.format(repair_is_due=repair_is_due)
        self.checkpoint = checkpoint
        self._terms = Terms()
        self._last_sent = 0  # as of the latest look
        self._read: tuple[list[Entry], Bounds] = [], Bounds(0, {})  # the batch under way
        self._read_at = 0.0  # seconds, of the monotonic clock
        self._took = 0.0  # seconds; the last round, without its wait
        self.committing = Committing()

    def run_once(self, *, wait: float = 0) -> Round:
        """Take one batch from the log, or check an idle one, and return what was done.

        Waits up to `wait` seconds for an entry, outside any transaction. Raises psycopg.Error,
        redis.RedisError, Unavailable or Overtaken: then nothing was committed.
        """
        done = self._look(wait)
        began = self._read_at
        if self.at.ride_id < self._last_sent and done.did_nothing:
            # Rides that the streamer has committed were not in that read. It may have begun before
            # they were sent, so read again: what is still not there is lost.
            done = self._look(0)
        self._took = time.monotonic() - began
        return done

    @property
    def pause(self) -> float:
        """Seconds to rest before the next round, which waits for news by itself.

        Whoever is behind rests for twice as long as it works, so that catching up does not slow
        down those who take rides.
        """
        rests = self.behind and self._batch_size >= SMALLEST_BATCH
        return min(REST * self._took, LONGEST_REST) if rests else 0

    @abstractmethod
    def _commit(self, batch: Digest, *, rewound: bool = False) -> Round:
        """Do what is to be done with a batch, move the checkpoint, and set `at`."""

    def _repair(self) -> Round:
        """Do what `repair_is_due` has found to be asked for."""
        raise NotImplementedError

    def _look(self, wait: float) -> Round:
        """Read, ask how far the entries can be believed, and commit them.

        A read that reached the end of the stream, whatever it held, has seen everything that was
        sent before it: what it did not see is lost.
        """
        sent_before = self._last_sent
        began = time.monotonic()
        entries = self._log.read(self.at.redis_id, self._batch_size, wait)
        self.behind = len(entries) == self._batch_size
        just_arrived = bool(entries) and time.monotonic() - began > WAITED
        if just_arrived:  # they were sent a moment ago: give the streamer time to commit them
            self.committing.wait()
        self._read_at = time.monotonic()
        bounds, repair_is_due = self._bounds()  # after the entries: see `digest`
        self._last_sent = bounds.last_sent
        self._read = entries, bounds
        if repair_is_due:  # the next round reads from wherever that leads
            return self._repair()
        if not entries and as_numbers(self._log.last_id()) < as_numbers(self.at.redis_id):
            # Wiped, or restored to an earlier state: what was counted before will be skipped.
            return self._commit(Digest(self.at.ride_id, START), rewound=True)
        batch = digest(entries, self.at.ride_id, self.at.redis_id, bounds)
        if len(entries) < self._batch_size:
            batch.close_gap(min(sent_before, bounds.last_sent))
        stays = (batch.last_redis_id, batch.last_ride_id) == self.at
        if just_arrived:
            self.committing.learn(too_soon=stays)
        if stays:
            self.behind = False
            return Round(held=bool(entries))
        return self._commit(batch)

    def _cut(self, upto: int) -> Digest:
        """The batch under way, but only up to this ride: what comes after it will be read again."""
        entries, bounds = self._read
        batch = digest(entries, self.at.ride_id, self.at.redis_id, bounds._replace(last_sent=upto))
        batch.close_gap(upto)
        return batch

    def _bounds(self) -> tuple[Bounds, bool]:
        """How far the log can be believed, and whether a repair is due. Raises StateLost."""
        parameters = self._parameters | {"known": self._terms.newest}
        row = self._connection.execute(self._bounds_statement, parameters).fetchone()
        if row is None:
            raise StateLost
        last_sent, last_drawn, terms, repair_is_due = row
        # What was sent was drawn, even if the sequence was set back since.
        believed = self._terms.update(terms, max(last_drawn, last_sent))
        return Bounds(last_sent, believed), repair_is_due
