"""Deletes idempotency keys whose clients have long stopped retrying.

Each of the API's workers does so when it starts and then once a day, in its own thread and on its
own connection, unless another worker, of this or another API, is already doing it, which an
advisory lock tells. A failure is retried after a minute, and then every hour. Nothing records when
it was last done: a day on which no API ran is made up for at the next start.

The table is walked in ranges of blocks, each visited once, in its own transaction, followed by a
pause: no index on the time is needed, no snapshot is held for long, and a request with a key that
is just being deleted waits for milliseconds. Then the key counts as new, and the request takes
another ride, since IDEMPOTENCY_DAYS are over. A key that has not expired is never touched, nor is
one that is being written: neither matches. The isolation level is READ COMMITTED, so that it can't
make a booking, which is SERIALIZABLE, fail.

A crash, at whatever step, only leaves fewer keys to prune the next time.

No request waits for it, so it does not go through the engine: its session is psycopg's, as that of
every service in the pipeline, and waits for nobody's turn in the pool.
"""

import logging
import random
from contextlib import closing
from threading import Thread

import psycopg

from rocket_rides import revisions
from rocket_rides.locks import Lock
from rocket_rides.settings import Settings
from unified_log import database
from unified_log.errors import Unavailable, in_one_line
from unified_log.locks import try_lock
from unified_log.process import Stop

logger = logging.getLogger("api")

A_DAY = 86_400.0  # seconds
SOON, RETRY = 60.0, 3600.0  # seconds after an attempt that failed, and after the next ones

BLOCKS_AT_A_TIME = 128  # a megabyte
PAUSE = 0.02  # seconds between two ranges: requests come first

SESSION = {"lock_timeout": "1s"}

# Keys written from now on are newer than the cutoff, so later blocks need no visit.
CUTOFF_AND_BLOCKS = """
    SELECT now() - make_interval(days => %s),
        pg_relation_size('idempotency_keys') / current_setting('block_size')::bigint
"""

# The condition on ctid, a row's place in the table, makes it read these blocks only.
PRUNE_BLOCKS = """
    DELETE FROM idempotency_keys
    WHERE ctid >= %(first)s::tid AND ctid < %(end)s::tid AND created_at < %(cutoff)s
"""


def prune(connection: psycopg.Connection, days: int, stop: Stop) -> int:
    """Delete the keys older than `days`, or some of them if told to stop; returns how many.

    `connection` must be in autocommit mode, with the settings in SESSION. Raises psycopg.Error.
    """
    [(cutoff, blocks)] = connection.execute(CUTOFF_AND_BLOCKS, [days])
    deleted = 0
    for first in range(0, blocks, BLOCKS_AT_A_TIME):
        if stop:
            break
        end = first + BLOCKS_AT_A_TIME
        values = {"first": f"({first},0)", "end": f"({end},0)", "cutoff": cutoff}
        deleted += connection.execute(PRUNE_BLOCKS, values).rowcount
        stop.wait(PAUSE)
    return deleted


class Pruner:
    """Prunes at once and then every day, until `stop` or until this process ends."""

    def __init__(self, config: Settings, stop: Stop, every: float = A_DAY) -> None:
        self._url = config.postgres_url
        self._cell = config.cell
        self._days = config.idempotency_days
        self._stop = stop
        self._every = every

    def start(self) -> None:
        """Run in a thread that ends with the process."""
        Thread(target=self.run, name="pruning", daemon=True).start()

    def run(self) -> None:
        failed = False
        while not self._stop:
            try:
                self._attempt()
            except (Unavailable, psycopg.Error) as error:
                # At first the server may be starting together with us.
                level, pause = (logging.WARNING, RETRY) if failed else (logging.DEBUG, SOON)
                logger.log(level, "can't prune idempotency keys: %s", in_one_line(error))
                failed = True
                self._stop.wait(pause)
            else:
                failed = False
                # So that workers that started together drift apart.
                self._stop.wait(self._every * random.uniform(0.9, 1))

    def _attempt(self) -> None:
        session = database.connect(self._url, "api (pruning)", **SESSION)
        with closing(session) as connection:  # closing it releases the lock
            revisions.require_schema(connection, self._cell)
            if not try_lock(connection, Lock.PRUNING):
                logger.debug("another worker is pruning the keys")
                return
            deleted = prune(connection, self._days, self._stop)
        level = logging.INFO if deleted else logging.DEBUG
        logger.log(level, "pruned %d idempotency keys older than %d days", deleted, self._days)
