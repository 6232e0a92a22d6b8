"""One batch from the outbox to the log: select, send, delete exactly what was sent, move on.

While Redis appends, Postgres deletes, and the batch that follows is read and packed. All of this
commits only once Redis has answered. `last_sent`, in streamer_state, is the id of the last record
that was sent and committed. A new leader begins a term, its fencing token, at `last_sent`, and
sends every batch under it (`unified_log.terms`).
"""

from enum import Enum
from typing import NamedTuple, cast

import psycopg

from unified_log import spans
from unified_log.errors import Overtaken
from unified_log.faults import reached
from unified_log.log import Log, Packed, Staged, packed
from unified_log.streamer import leaders_term
from unified_log.streamer.barrier import Barrier
from unified_log.tracing import Trace, parse

# Starts in the index at last_sent, so it never visits the rows that were deleted before.
NEXT_BATCH = """
    SELECT id, type, data::text, traceparent, tracestate
    FROM staged_log_records WHERE id > %s AND id <= %s ORDER BY id LIMIT %s
"""
# In binary: parsing a thousand ids as text would take a third of the statement's time.
DELETE_SENT = "DELETE FROM staged_log_records WHERE id = ANY(%b)"
# Compare-and-set, and only for the leader of the newest term.
MOVE_LAST_SENT = """
    UPDATE streamer_state
    SET version = version + 1, last_sent_id = %s, records_sent = records_sent + %s
    WHERE version >= (SELECT version FROM streamer_state ORDER BY version DESC LIMIT 1)
      AND last_sent_id = %s AND (SELECT term FROM terms ORDER BY after DESC LIMIT 1) = %s
"""


class BatchStep(Enum):
    """Where a streamer can be made to crash, in order."""

    BEFORE_SEND = "before the batch was sent"
    AFTER_SEND = "after the batch was sent and before it was deleted"
    BEFORE_COMMIT = "after the batch was deleted and before the commit"
    AFTER_COMMIT = "after the commit"


class Batch(NamedTuple):
    """Staged records, and the same as they are sent."""

    records: list[Staged]
    packed: Packed


class Streamer:
    """Drains the outbox, on `connection`, into `log`, for the leader (`streamer/leading.py`).

    The connection, which holds the leader lock, is in autocommit: each statement outside a
    `transaction()` stands alone. Begins a term. Raises psycopg.Error or terms.StateLost.
    """

    def __init__(self, connection: psycopg.Connection, log: Log, batch_size: int = 1000) -> None:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self._connection = connection
        self._log = log
        self._batch_size = batch_size
        self.barrier = Barrier(connection)
        self.term = leaders_term.begin_term(connection)
        self.last_sent = self.term.after
        # Records up to _settled may be sent; up to _drained none are left. Both can be above
        # last_sent, where transactions that rolled back drew numbers.
        self._settled = 0
        self._drained = 0
        self._redis_accepts = True
        self._following: Batch | None = None  # after last_sent, if it was read already
        self.types: set[str] = set()  # of the records that it has sent
        self.traces: list[Trace] = []  # of those in the newest batch

    def run_once(self, *, double_send: bool = False) -> int:
        """Send one batch of settled records and return how many they were.

        A backlog is drained on one reading of the barrier, batch by batch. With `double_send` the
        batch is sent twice. Raises LogFull, LogExhausted, redis.RedisError, psycopg.Error or
        Overtaken. Then the batch is still staged, unless the connection was lost during the commit;
        it may be in the log all the same. It is sent again under the same ids, and readers skip the
        copies.
        """
        if self._drained == self._settled:
            self._settled = self.barrier.settled()
        if self._drained == self._settled:
            return 0
        following = None
        with self._connection.transaction():
            batch, self._following = self._following or self._read(self.last_sent), None
            if records := batch.records:
                traces = [parse(parent, state) for _, _, _, parent, state in records if parent]
                self.traces = [trace for trace in traces if trace]
                with spans.batch_sent(self._log.name, len(records), self.traces):
                    following = self._move(batch, double_send)
        reached(BatchStep.AFTER_COMMIT)
        if records:
            self.last_sent, self._following = records[-1][0], following
            self.types.update({type_ for _, type_, _, _, _ in records})
        if len(records) < self._batch_size:
            self._drained = self._settled
        return len(records)

    def _read(self, after: int) -> Batch:
        rows = self._connection.execute(NEXT_BATCH, [after, self._settled, self._batch_size])
        records = cast(list[Staged], rows.fetchall())
        return Batch(records, packed(records))

    def _move(self, batch: Batch, double_send: bool) -> Batch | None:
        """Send the batch and take it out; returns the batch that follows, if it was read.

        It is settled, so it can be read early. Reading it while Redis appends saves a drain a
        seventh of its time.
        """
        records, following = batch.records, None
        reached(BatchStep.BEFORE_SEND)
        if double_send:
            self._log.append(records, self.last_sent, self.term)
        if self._redis_accepts:
            self._redis_accepts = False  # until it has taken this batch
            with self._log.appending(batch.packed, self.last_sent, self.term):
                ours = self._take_out(records)
                if len(records) == self._batch_size:
                    following = self._read(records[-1][0])
        else:
            # Redis may be full: Postgres would delete in vain, again and again.
            self._log.append(records, self.last_sent, self.term)
            ours = self._take_out(records)
        if not ours:
            raise Overtaken(
                "another streamer, a repair, or somebody by hand"
                " changed the outbox or streamer_state"
            )
        self._redis_accepts = True
        reached(BatchStep.BEFORE_COMMIT)
        return following

    def _take_out(self, records: list[Staged]) -> bool:
        """Delete the batch from the outbox and move on; returns whether both were ours to do."""
        reached(BatchStep.AFTER_SEND)
        sent = [position for position, _, _, _, _ in records]
        deleted = self._connection.execute(DELETE_SENT, [sent]).rowcount
        values = [sent[-1], deleted, self.last_sent, self.term.name]
        moved = self._connection.execute(MOVE_LAST_SENT, values).rowcount
        return deleted == len(sent) and moved == 1
