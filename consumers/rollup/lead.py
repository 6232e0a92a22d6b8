"""One lead: a generation, its dirty set, and the reader and the indexer, which work in turns.

In turns, so that nobody marks a minute between its computation and its removal from the dirty set.
"""

import time

import psycopg

from consumers.checkpoint import Checkpoint
from consumers.reader import Reader
from consumers.rollup import generation
from consumers.rollup.dirty import DirtyMinutes
from consumers.rollup.generation import KIND, NAME, Generation
from consumers.rollup.indexer import Indexer
from consumers.rollup.marker import Marker
from consumers.rollup.step import Step
from consumers.round import Round
from rocket_rides.errors import Overtaken
from rocket_rides.faults import reached
from rocket_rides.log import Log

# Seconds between two rounds of the indexer. Rides gather meanwhile: each minute is computed once
# for all of them. If computing takes long, the pause grows, up to LONGEST_PAUSE, so that computing
# gets a SHARE of the time.
PAUSE = 0.25
LONGEST_PAUSE = 0.5
SHARE = 0.1
# When a ride comes after a pause, the totals get the processors first: nobody waits for the rollup.
GIVE_WAY = 0.02  # seconds


class Lead:
    """Begins a new generation. For the session that has the lock; see `generation`.

    Every method raises psycopg.Error, redis.RedisError or Unavailable: then this lead is over.
    """

    def __init__(self, connection: psycopg.Connection, log: Log, batch_size: int = 1000) -> None:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self.connection = connection
        self._log = log
        checkpoint = Checkpoint(connection, KIND, NAME)
        before = generation.of_before(connection)
        if before:
            DirtyMinutes(log, before).delete()
        reached(Step.AFTER_DELETION)
        self.generation = Generation(connection, checkpoint, before)
        reached(Step.AFTER_DRAW)
        self.dirty = DirtyMinutes(log, self.generation.name)
        self.marker = Marker(connection, self.generation, self.dirty)
        self.reader = Reader(log, self.marker, batch_size)
        self.indexer = Indexer(connection, self.generation, self.dirty)
        self._due = 0.0

    def run_once(self, *, wait: float = 0) -> Round:
        """Mark one batch, and compute what is dirty if that is due; returns what the batch held.

        Waits up to `wait` seconds for an entry if nothing is dirty. A `pause` is to follow.
        """
        try:
            return self._run_once(wait)
        except (Overtaken, psycopg.Error):
            # If we were superseded while we hung, our successor has deleted our dirty set, and
            # cannot know what we have marked since.
            self.dirty.delete()
            raise

    def _run_once(self, wait: float) -> Round:
        asleep = not (self.dirty.count or self.reader.behind)
        if asleep and self._log.read(self.reader.at.redis_id, 1, wait):
            time.sleep(GIVE_WAY)
        done = self.reader.run_once()
        if not done.did_nothing:
            reached(Step.AFTER_MOVE)
        began = time.monotonic()
        if began >= self._due:
            more = self.indexer.run_once(self.reader.at.position)
            took = time.monotonic() - began
            pause = min(max(PAUSE, took / SHARE - took), LONGEST_PAUSE)
            self._due = time.monotonic() + (0 if more else pause)
        return done

    @property
    def pause(self) -> float:
        """Seconds until there is something to do. Rides gather meanwhile, and their marks fold."""
        return self.reader.pause if self.reader.behind else max(0, self._due - time.monotonic())
