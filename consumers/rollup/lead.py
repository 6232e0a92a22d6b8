"""One lead: a generation, its dirty minutes, and two loops that work on them at the same time.

The reader marks, in the thread that has the lead. The indexer computes, in a thread and a session
of its own: so no minute, however long it takes, holds up the marking.
"""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import psycopg

from consumers.rollup import generation
from consumers.rollup.dirty import DirtyMinutes
from consumers.rollup.generation import KIND, NAME, Generation
from consumers.rollup.indexer import Indexer
from consumers.rollup.marker import Marker
from consumers.rollup.step import INDEXING, RollupStep
from unified_log.errors import Overtaken, Unavailable
from unified_log.faults import crashing, reached
from unified_log.log import Log
from unified_log.readers.checkpoint import Checkpoint
from unified_log.readers.reader import Reader
from unified_log.readers.round import Round

# Seconds between two rounds of either loop; IDLE after one that found nothing. Rides gather
# meanwhile, and each minute is computed once for all of them.
PAUSE, IDLE = 0.25, 0.5
# Seconds that a round of the indexer may take, with its three statements and what they wait for.
LONGEST_ROUND = 150.0


class Lead:
    """Begins a new generation. For the session that has the lock; see `generation`.

    Each loop has a session with Postgres and a connection with Redis of its own: the reader has
    `connection` and `log`, the indexer has `indexer_connection`, and `marks` is for the Ick, which
    both use.
    Every method raises psycopg.Error, redis.RedisError or Unavailable: then this lead is over.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        indexer_connection: psycopg.Connection,
        marks: Log,
        batch_size: int = 1000,
    ) -> None:
        self.connection = connection
        checkpoint = Checkpoint(connection, KIND, NAME)
        before = generation.of_before(connection)
        if before:
            DirtyMinutes(marks, before).delete()
        reached(RollupStep.AFTER_DELETION)
        self.generation = Generation(connection, checkpoint, before)
        reached(RollupStep.AFTER_DRAW)
        self.dirty = DirtyMinutes(marks, self.generation.name)
        self.marker = Marker(connection, self.generation, self.dirty)
        self.reader = Reader(log, self.marker, batch_size)
        self.indexer = Indexer(indexer_connection, self.generation, self.dirty)
        self.pause = 0.0  # seconds until there may be more to mark
        self._first_marked: int | None = None  # where the first round of marking ended
        self._indexed_upto = -1
        self._began = time.monotonic()  # the indexer's round
        self._failure: BaseException | None = None
        self._over = Event()

    def run_once(self, *, wait: float = 0) -> Round:
        """Mark one batch, and return what it held. Raises what ended the indexer, too.

        Nobody waits for the rollup, so it does not `wait` for an entry, but looks after a `pause`.
        """
        if self._failure:
            raise self._failure
        if time.monotonic() - self._began > LONGEST_ROUND:
            raise Unavailable("the rollup's indexer hangs; leading anew")
        done = self.reader.run_once()
        # Last, by itself: idle_session_timeout, which ends a leader that hangs, does not run in a
        # session that psycopg's pipeline, which the reader uses, has left idle.
        self.generation.check(self.connection)
        if self._first_marked is None:
            self._first_marked = self.reader.at.position
        if not done.did_nothing:
            reached(RollupStep.AFTER_MOVE)
        self.pause = IDLE if done.did_nothing else PAUSE
        if self.reader.behind:
            self.pause = self.reader.pause
        return done

    @property
    def works(self) -> bool:
        """Whether the indexer, too, has come past what was marked first."""
        return self._first_marked is not None and self._indexed_upto >= self._first_marked

    @contextmanager
    def indexing(self, crash_rate: float = 0) -> Iterator[None]:
        """Have the indexer work until the block ends."""
        thread = Thread(target=self._index, args=[crash_rate], name="indexer", daemon=True)
        thread.start()
        try:
            try:
                yield
            finally:
                self._over.set()
                _hang_up(self.indexer.connection)  # it may be computing a long minute
                thread.join()
        except (Overtaken, psycopg.Error):
            # If we were superseded while we hung, our successor has deleted our Ick. If there was
            # none until then, we may have made one since, and only we know of it.
            self.dirty.delete()
            raise

    def _index(self, crash_rate: float) -> None:
        try:
            while not self._over.is_set():
                self._began = time.monotonic()
                marked_upto = self.reader.at.position
                with crashing(crash_rate, *INDEXING):
                    more = self.indexer.run_once(marked_upto)
                self._indexed_upto = marked_upto
                if not more:
                    self._over.wait(PAUSE if self.dirty.count else IDLE)
        except BaseException as failure:
            self._failure = failure


def _hang_up(connection: psycopg.Connection) -> None:
    """Have the thread that waits for this connection's server get an error at once."""
    with (
        suppress(OSError, psycopg.OperationalError),  # the connection is broken already
        socket.socket(fileno=os.dup(connection.fileno())) as link,
    ):
        link.shutdown(socket.SHUT_RDWR)
