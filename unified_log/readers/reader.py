"""A reader: follows the log from a checkpoint, and hands its handler each of its records once.

The reader knows the log: what was read, whether it is ours, what is missing, and when to wait. What
becomes of the records is its handler's (`unified_log.readers.handler`).
"""

import time
from typing import Generic, TypeVar

import psycopg

from rocket_rides import telemetry
from unified_log.database import is_alive, one_row
from unified_log.faults import reached
from unified_log.log import START, Entry, Log, as_numbers
from unified_log.readers.checkpoint import Checkpoint, Place
from unified_log.readers.committing import Committing
from unified_log.readers.digest import Digest, digest
from unified_log.readers.handler import Handler
from unified_log.readers.ours import Bounds, KnownTerms
from unified_log.readers.round import Round, Step

REST = 2  # times what a round took, for a reader that is behind
LONGEST_REST = 0.1  # seconds: a round may also have waited for a lock
WAITED = 0.001  # seconds: a read that takes longer has waited for an entry
# Entries. Smaller batches are often full without a backlog, so no rest follows them.
SMALLEST_BATCH = 100
# Whether the log was wiped is asked rarely where answers move entries of 20 MB or more: after so
# many times what the last of those took, and so many seconds at least.
RARELY = 20.0

H = TypeVar("H", bound=Handler)


class Reader(Generic[H]):
    """Follows `log` from the checkpoint of its handler, on the handler's connection."""

    behind = False  # whether there may be more to take at once
    works = True  # after each of its rounds

    def __init__(self, log: Log, handler: H, batch_size: int = 1000) -> None:
        self.handler = handler
        self.checkpoint = Checkpoint(handler.connection, handler.KIND, handler.name)
        self.committing = Committing()
        self._connection = handler.connection
        self._connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self._log = log
        self._batch_size = batch_size
        self._types = {type_.encode(): parse for type_, parse in handler.TYPES.items()}
        self._terms = KnownTerms()
        self._last_sent = 0  # as of the latest look
        self._read_at = 0.0  # seconds, of the monotonic clock
        self._took = 0.0  # seconds; the last round, without its wait
        self._look_at = 0.0  # whether the log was wiped
        # Both or neither: new state beside an old checkpoint would be wrong for ever.
        with self._connection.transaction():
            if self.checkpoint.make():
                handler.begin()
            self.checkpoint.lock()
            self.checkpoint.handles(handler.TYPES, recounts=handler.RECOUNTS)
            self.at = self._load()

    def run_once(self, *, wait: float = 0) -> Round:
        """Take one batch from the log, or check an idle one, and return what was done.

        Waits up to `wait` seconds for an entry, outside any transaction. Raises psycopg.Error,
        redis.RedisError, Unavailable or Overtaken: then nothing was committed, as far as is known.
        """
        done = self._look(wait)
        began = self._read_at
        if self.at.position < self._last_sent and done.did_nothing:
            # Records that the streamer has committed were not in that read. It may have begun
            # before they were sent, so read again: what is still not there is lost.
            done = self._look(0)
        self._took = time.monotonic() - began
        return done

    @property
    def pause(self) -> float:
        """Seconds to rest before the next round, which waits for news by itself.

        A reader that is behind rests for twice as long as it works, so that catching up does not
        slow down those who take rides.
        """
        rests = self.behind and self._batch_size >= SMALLEST_BATCH
        return min(REST * self._took, LONGEST_REST) if rests else 0

    def _look(self, wait: float) -> Round:
        """Read, ask which entries are ours, and take them.

        A read that reached the end of the stream, whatever it held, has seen everything that was
        sent before it: what it did not see is lost.
        """
        sent_before = self._last_sent
        entries, just_arrived = self._read(wait)
        bounds, repair_is_due = self._ask()  # after the entries: see `digest`
        self._last_sent = bounds.last_sent
        if repair_is_due:  # the next round reads from wherever that leads
            return self._repair()
        if not entries and self._was_wiped():  # what was counted before will be skipped
            return self._commit(Digest(self.at.position, START), rewound=True)
        batch = self._digest(entries, bounds)
        if len(entries) < self._batch_size:
            batch.close_gap(min(sent_before, bounds.last_sent))
        stays = (batch.last_redis_id, batch.position) == self.at
        if just_arrived:
            self.committing.learn(too_soon=stays)
        if stays:
            self.behind = False
            return Round(held=bool(entries))
        upto = self.handler.prepare(self.at.position, batch.position)
        if upto < batch.position:
            # Only a first piece of the batch is done. What comes after it will be read again.
            self.behind = True
            gaps = batch.gaps
            batch = self._digest(entries, bounds._replace(last_sent=upto))
            batch.close_gap(upto, is_last=any(gap.upto == upto for gap in gaps))
        return self._commit(batch)

    def _read(self, wait: float) -> tuple[list[Entry], bool]:
        """The next entries, and whether they arrived while it waited for them."""
        began = time.monotonic()
        entries = self._log.read(self.at.redis_id, self._batch_size, wait)
        self._look_rarely_if_huge(began)
        self.behind = len(entries) == self._batch_size
        just_arrived = bool(entries) and time.monotonic() - began > WAITED
        if just_arrived:  # they were sent a moment ago: give the streamer time to commit them
            self.committing.wait()
        self._read_at = time.monotonic()
        return entries, just_arrived

    def _was_wiped(self) -> bool:
        """Whether the log was wiped, or restored to an earlier state.

        Redis tells that only together with the whole of the first and the last entry.
        """
        if (began := time.monotonic()) < self._look_at:
            return False
        last_id = self._log.last_id()
        self._look_rarely_if_huge(began)
        return as_numbers(last_id) < as_numbers(self.at.redis_id)

    def _look_rarely_if_huge(self, began: float) -> None:
        if self._log.was_cut:
            now = time.monotonic()
            self._look_at = now + RARELY * max(1, now - began)

    def _ask(self) -> tuple[Bounds, bool]:
        """How far the log is ours, and whether a repair is due. Raises StateLost.

        Two questions in one round trip, since this is asked in every round.
        """
        if not is_alive(self._connection):
            self._terms.ask(self._connection)  # raises the server's reason: a pipeline hides it
        with self._connection.pipeline():
            bounds = self._terms.ask(self._connection)
            repair = self.handler.ask_for_repair()
        return self._terms.learn(bounds.fetchone()), repair is not None and bool(one_row(repair)[0])

    def _digest(self, entries: list[Entry], bounds: Bounds) -> Digest:
        return digest(entries, self.at.position, self.at.redis_id, bounds, self._types)

    def _commit(self, batch: Digest, *, rewound: bool = False) -> Round:
        """Let the handler take a batch and move the checkpoint past it, in one transaction.

        The checkpoint moves by compare-and-set: a second process of this name, which wants to take
        the same batch, gets Overtaken.
        """
        stream, name, count = self._log.name, self.handler.name, len(batch.records)
        with (
            telemetry.batch_taken(stream, name, count, batch.traces.values()),
            self._connection.transaction(),
        ):
            self.handler.fence()
            reached(Step.BEFORE_STATE)
            if batch.gaps or batch.malformed:  # before other rows, as in a repair: else a deadlock
                self.checkpoint.lock()
            healed = [done for gap in batch.gaps if (done := self.handler.heal(gap))]
            to = self.checkpoint.move(self.at, batch, healed)
            self.handler.take(batch.records)
            reached(Step.BEFORE_COMMIT)
        self.at = to
        reached(Step.AFTER_COMMIT)
        return Round(
            batch.records,
            batch.traces,
            healed,
            batch.skipped,
            batch.malformed,
            batch.not_ours,
            rewound,
        )

    def _repair(self) -> Round:
        """Let the handler do what is asked of it, in a transaction of its own."""
        with self._connection.transaction():
            reached(Step.BEFORE_STATE)
            self.checkpoint.lock()
            repair = self.handler.repair()
            moved_to = self._load()
            reached(Step.BEFORE_COMMIT)
        self.at = moved_to
        reached(Step.AFTER_COMMIT)
        return Round(repair=repair)

    def _load(self) -> Place:
        at = self.checkpoint.load()
        self.handler.load(at)
        return at
