"""A reader: follows the log from a checkpoint, and hands its handler each of its records once.

The reader knows the log: what was read, whether it is committed, what is missing, and when to wait.
What becomes of the records is its handler's (`unified_log.readers.handler`).
"""

import time
from typing import Generic, TypeVar

import psycopg

from unified_log.database import is_alive, one_row
from unified_log.log import Entry, Invalid, Log, as_numbers
from unified_log.readers.checkpoint import Checkpoint, Place
from unified_log.readers.committed import Bounds, KnownTerms
from unified_log.readers.committing import Committing
from unified_log.readers.digest import Digest, digest
from unified_log.readers.gaps import Gap
from unified_log.readers.handler import Handler
from unified_log.readers.healing import PAGE, View, in_order
from unified_log.readers.limit import Limit
from unified_log.readers.round import Round
from unified_log.readers.taking import Taking

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

    def __init__(
        self, log: Log, handler: H, batch_size: int = 1000, limit: Limit | None = None
    ) -> None:
        self.handler = handler
        self.committing = Committing()
        self._connection = handler.connection
        self._connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self._log = log
        self._limit = limit or Limit(batch_size)
        self._types = {type_.encode(): parse for type_, parse in handler.TYPES.items()}
        self._terms = KnownTerms()
        self._last_sent = 0  # as of the latest look
        self._read_at = 0.0  # seconds, of the monotonic clock
        self._took = 0.0  # seconds; the last round, without its wait
        self._look_at = 0.0  # whether the log was wiped
        self._rest: Gap | None = None  # of a gap of which a first part is being healed
        self._view = View(handler.connection, self._types)
        self._taking = Taking(handler, self._view, log.name, self._limit)
        self.began = self.at  # where it stood when it was made

    @property
    def at(self) -> Place:
        """Where it stands."""
        return self._taking.at

    @property
    def checkpoint(self) -> Checkpoint:
        return self._taking.checkpoint

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
    def _batch_size(self) -> int:
        return self._limit.now

    @property
    def pause(self) -> float:
        """Seconds to rest before the next round, which waits for news by itself.

        A reader that is behind rests for twice as long as it works, so that catching up does not
        slow down those who write.
        """
        rests = self.behind and self._batch_size >= SMALLEST_BATCH
        return min(REST * self._took, LONGEST_REST) if rests else 0

    def _look(self, wait: float) -> Round:
        """Read, ask which entries are committed, and take them.

        A read that reached the end of the stream, whatever it held, has seen everything that was
        sent before it: what it did not see is lost.
        """
        sent_before = self._last_sent
        rest, self._rest = self._rest, None
        if is_healing := rest is not None and rest.after == self.at.position:
            entries: list[Entry] = []
            just_arrived, self._read_at = False, time.monotonic()
        else:
            entries, just_arrived = self._read(wait)
        bounds, repair_is_due = self._ask()  # after the entries: see `digest`
        self._last_sent = bounds.last_sent
        if repair_is_due:  # the next round reads from wherever that leads
            return self._taking.repair()
        if not is_healing and not entries and self._was_wiped():
            return self._taking.rewind()
        batch = self._digest(entries, bounds)
        if rest and is_healing:
            batch.close_gap(min(rest.upto, bounds.last_sent))
        elif len(entries) < self._batch_size:
            found = batch.position
            batch.close_gap(min(sent_before, bounds.last_sent))
            if found < batch.position:
                self._log.require_primary()  # else there would be another gap in each round
        stays = (batch.last_redis_id, batch.position) == self.at
        if just_arrived:
            self.committing.learn(too_soon=stays)
        if stays:
            self.behind = False
            return Round(held=bool(entries))
        return self._take(batch, entries, bounds)

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
        """How far the log is committed, and whether a repair is due. Raises StateLost.

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

    def _take(self, whole: Digest, entries: list[Entry], bounds: Bounds) -> Round:
        """Take a batch, or a first part of it: what comes after that will be read again."""
        prepared = whole
        upto = self.handler.prepare(self.at.position, whole.position)
        if upto < whole.position:
            prepared = self._first_part(whole, upto, entries, bounds)
        while (done := self._try(prepared, whole, entries, bounds)) is None:
            pass  # it was refused, and fewer records are tried
        return done

    def _try(
        self, batch: Digest, whole: Digest, entries: list[Entry], bounds: Bounds
    ) -> Round | None:
        """Try a part that the handler has prepared, or a first part of that; None if refused.

        That is one page of what is healed from the view, no more than a batch in all, and fewer
        records than there are while one is looked for that is refused.
        """
        page = min(PAGE, self._batch_size)
        missing = self._view.missing(batch.gaps, page) if self._taking.looks_into_gaps else []
        if len(missing) >= page:
            batch = self._first_part(whole, missing[-1].position, entries, bounds)
        items = in_order(batch.items, missing)
        most = min(self._taking.most or len(items), self._batch_size)
        if missing:  # what is malformed in the view goes alone, to be held out
            invalid = (n for n, item in enumerate(items) if isinstance(item.record, Invalid))
            most = min(most, max(1, next(invalid, most)))
        if most < len(items):
            items = items[:most]
            batch = self._first_part(whole, items[-1].position, entries, bounds)
            missing = [item for item in missing if item.position <= batch.position]
        return self._taking.commit(batch, items, missing)

    def _first_part(self, whole: Digest, upto: int, entries: list[Entry], bounds: Bounds) -> Digest:
        """What a batch holds up to a position; remembers the rest of a gap that is cut there."""
        part = self._digest(entries, bounds._replace(last_sent=upto))
        part.close_gap(upto, is_last=any(gap.upto == upto for gap in whole.gaps))
        cut = (gap for gap in whole.gaps if gap.after < upto < gap.upto)
        self._rest = next((gap._replace(after=upto) for gap in cut), None)
        self.behind = True
        return part
