"""What a reader writes: batches, repairs, and retries, each in a transaction with its checkpoint.

A batch that is refused is tried again in halves, until the record that is to blame is alone, and is
held out (`unified_log/readers/held_out.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

import psycopg

from unified_log import spans
from unified_log.errors import Unavailable, in_one_line
from unified_log.faults import InjectedCrash, reached
from unified_log.log import START, Invalid
from unified_log.readers.checkpoint import Checkpoint, Place
from unified_log.readers.digest import Digest
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.handler import Handler
from unified_log.readers.healing import PAGE, Item, View
from unified_log.readers.held_out import HeldOut, HeldOutRecords, Refusal, Retried, refusal
from unified_log.readers.limit import Limit
from unified_log.readers.round import Round, RoundStep
from unified_log.terms import last_sent

H = TypeVar("H", bound=Handler)

# They tell enough: what they end begins again by itself.
EXPECTED = psycopg.Error, Unavailable, InjectedCrash
TOO_LONG = psycopg.errors.IdleInTransactionSessionTimeout


class Taking(Generic[H]):
    """What the handler takes, of the reader that stands `at` its checkpoint.

    `most` is how many records the next transaction may take: fewer than all of a batch while one is
    looked for that is refused. Methods raise psycopg.Error, Unavailable or Overtaken: then nothing
    was committed, as far as is known.
    """

    def __init__(self, handler: H, view: View, stream: str, limit: Limit) -> None:
        self.checkpoint = Checkpoint(handler.connection, handler.KIND, handler.name)
        self.most: int | None = None
        self._handler = handler
        self._view = view
        self._stream = stream
        self._limit = limit
        self._connection = handler.connection
        self._held_out = HeldOutRecords(handler.connection, handler.KIND, handler.name)
        # Both or neither: new state beside an old checkpoint would be wrong for ever.
        with self._connection.transaction():
            if self.checkpoint.make():
                handler.create_state()
                if (closed := handler.close(last_sent(self._connection))) is not None:
                    self.checkpoint.begin_at(closed)
            self.checkpoint.lock()
            self.checkpoint.handles(handler.TYPES, recounts=handler.RECOUNTS)
            self.at = self._load()

    def commit(
        self,
        batch: Digest,
        items: Sequence[Item],
        missing: Sequence[Item],
        *,
        is_fresh: bool = False,
    ) -> Round | None:
        """Take `items`, and move the checkpoint past the batch.

        `missing` are those of the items that the log lacks; `is_fresh` says that the only item was
        taken from the view. Where the handler, or Postgres, refuses them, the only one is held out;
        or else nothing is committed, and this returns None: fewer are to be tried, as `most` says.
        """
        if len(items) == 1 and isinstance(items[0].record, Invalid):
            return self._hold_out(batch, items[0], Refusal(in_one_line(items[0].record)), missing)
        before = self.at
        try:
            done = self._commit(batch, items, missing)
        except Exception as error:
            why = refusal(error)
            unseen = bool(batch.gaps) and not self.looks_into_gaps
            if why is None or not (items or unseen):
                _say_what_it_took(items, error)
                if items and isinstance(error, TOO_LONG):
                    self._limit.exceeded(len(items))
                raise
            self._reload()
            if self.at != before:  # another process was here: this batch is not the next any more
                return Round()
            if len(items) > 1 or unseen:
                self.most = max(1, len(items) // 2)
                return None
            if not (is_fresh or missing):  # it came from Redis
                fresh = self._view.record(items[0].position)
                if fresh and fresh.record != items[0].record:
                    batch = replace(batch, items=[fresh])
                    return self.commit(batch, [fresh], missing, is_fresh=True)
            return self._hold_out(batch, items[0], why, missing)
        self._limit.kept(len(items))
        self._try_more()
        return done

    def rewind(self) -> Round:
        """Go back to the start of the log, which was wiped; the position stays."""
        done = self._commit(Digest(self.at.position, START), [], [])
        done.rewound = True
        return done

    @property
    def looks_into_gaps(self) -> bool:
        """Whether the view is asked what gaps hold: where SQL heals them, after a refusal only."""
        return not self._handler.heals_by_sql or self.most is not None

    def _try_more(self) -> None:
        if self.most is not None:
            self.most = self.most * 2 if self.most < PAGE else None

    def _hold_out(self, batch: Digest, item: Item, why: Refusal, missing: Sequence[Item]) -> Round:
        """Move past the only record of a batch, and note that the state lacks it."""
        found = HeldOut(item.position, item.type.decode(errors="replace"), why)
        self._held_out.require_few(found)
        done = self._commit(batch, [], missing, found)
        done.held_out = [found]
        self._try_more()
        return done

    def _commit(
        self,
        batch: Digest,
        items: Sequence[Item],
        missing: Sequence[Item],
        held_out: HeldOut | None = None,
    ) -> Round:
        """Let the handler take records and move the checkpoint past a batch, in one transaction.

        The checkpoint moves by compare-and-set: a second process of this name, which wants to take
        the same batch, gets Overtaken.
        """
        name, count = self._handler.name, len(items)
        with (
            spans.batch_taken(self._stream, name, count, batch.traces.values()),
            self._connection.transaction(),
        ):
            self._handler.fence()
            reached(RoundStep.BEFORE_STATE)
            if batch.gaps or batch.malformed:  # before other rows, as in a repair: else a deadlock
                self.checkpoint.lock()
            if self._handler.heals_by_sql and not (held_out and missing):
                heal = self._handler.heal
            else:
                heal = partial(self._heal, missing=[] if held_out else missing)
            healed = [done for gap in batch.gaps if (done := heal(gap))]
            to = self.checkpoint.move(self.at, batch, healed, count, int(held_out is not None))
            if held_out:
                self._held_out.keep(held_out)
            else:
                by_sql = {item.position for item in missing} if self._handler.heals_by_sql else ()
                records = [item.record for item in items if item.position not in by_sql]
                self._handler.take(records)
            reached(RoundStep.BEFORE_COMMIT)
        self.at = to
        self.checkpoint.moved()
        reached(RoundStep.AFTER_COMMIT)
        return Round(
            [] if held_out else batch.records,
            batch.traces,
            healed,
            batch.skipped,
            batch.malformed,
            batch.ignored,
        )

    def _heal(self, gap: Gap, missing: Sequence[Item]) -> Healed | None:
        """What a gap comes to whose records the handler takes, but for those it met before."""
        if gap.upto <= self.checkpoint.furthest:
            return None
        new = gap._replace(after=max(gap.after, self.checkpoint.furthest))
        return Healed(new, sum(new.after < item.position <= new.upto for item in missing))

    def repair(self) -> Round:
        """Do what somebody has asked for: a retry, or what the handler knows of."""
        if asked := self._held_out.to_retry():
            return self._retry(*asked)
        with self._connection.transaction():
            reached(RoundStep.BEFORE_STATE)
            self.checkpoint.change()
            repair = self._handler.repair()
            moved_to = self._load()
            reached(RoundStep.BEFORE_COMMIT)
        self.at = moved_to
        reached(RoundStep.AFTER_COMMIT)
        return Round(repair=repair)

    def _retry(self, position: int, type_: str) -> Round:
        """Try a record again that was held out: out of order, in a transaction of its own."""
        item = self._view.record(position)
        why: Refusal | None = None
        if item is None:
            why = Refusal("its row is gone, or of a type that is not handled")
        elif isinstance(item.record, Invalid):
            why = Refusal(in_one_line(item.record))
        else:
            try:
                if not self._count_again(item):
                    return Round()
            except Exception as error:
                why = refusal(error)
                if why is None:
                    _say_what_it_took([item], error)
                    raise
                self._reload()
        if why:
            with self._connection.transaction():
                self.checkpoint.lock()
                self._held_out.refused_again(position, why)
        return Round(retried=[Retried(position, type_, why)])

    def _count_again(self, item: Item) -> bool:
        """Take it, unless another process, a reset or a person was here in the meantime."""
        with self._connection.transaction():
            self._handler.fence()
            self.checkpoint.change()
            at = self._load()
            if not self._held_out.counted(item.position):
                return False
            self._handler.take([item.record])
            reached(RoundStep.BEFORE_COMMIT)
        self.at = at
        reached(RoundStep.AFTER_COMMIT)
        return True

    def _reload(self) -> None:
        """What the handler remembers may be of the transaction that was refused."""
        with self._connection.transaction():
            self.checkpoint.lock()
            self.at = self._load()

    def _load(self) -> Place:
        at = self.checkpoint.load()
        self._handler.load(at)
        return at


def _say_what_it_took(items: Sequence[Item], error: Exception) -> None:
    """Name the records in the traceback of an error that is not expected."""
    if items and not isinstance(error, EXPECTED):
        types = " and ".join(sorted({item.type.decode(errors="replace") for item in items}))
        first, last = items[0].position, items[-1].position
        which = f"position {first}" if first == last else f"positions {first} to {last}"
        error.add_note(f"while it took {types}, {which}")
