"""Gathering the facts: a few commands to Redis, one statement to Postgres, and Redis once more.

Redis is asked last for the dirty minutes, because Postgres knows in which Ick they are.

It reads, and changes nothing. A server that is away is reported with a reason, and asked again the
next time; one that hangs costs at most half of PATIENCE. A suspended server takes connections and
answers nothing, and looking up a name may hang in the system's own library. So each server is asked
in a thread of its own, which alone uses the connection. A question that is not answered in time is
given up; so are later ones, after the same time, until the thread's own time-outs end the first.
"""

import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeVar

from rocket_rides.settings import Settings
from unified_log.errors import Unavailable
from watch import asking_postgres, asking_redis
from watch.absence import Absence
from watch.asking_postgres import AskingPostgres, Said
from watch.asking_redis import AskingRedis
from watch.facts import NO_ANSWER, UP, Facts, Log, Server

PATIENCE = 1.4  # seconds, for both servers
EACH = PATIENCE / 2

T = TypeVar("T")


def ask(server: Executor, question: Callable[[], T], patience: float) -> T:
    """What `question` returns or raises; Unavailable when that takes `patience` seconds."""
    answer = server.submit(question)
    try:
        return answer.result(max(0, patience))
    except TimeoutError:
        answer.cancel()
        raise Unavailable(NO_ANSWER) from None


class Gatherer:
    """Gathers facts on connections of its own; for one thread at a time.

    A process that used one ends by os._exit: Python's own end would wait for a thread that hangs.
    """

    def __init__(self, config: Settings) -> None:
        self._postgres = AskingPostgres(config.postgres_url, config.cell)
        self._redis = AskingRedis(config.log_url, config.stream_name)
        self._absence = Absence()
        self._to_postgres, self._to_redis = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    def gather(self) -> Facts:
        """The facts as of now. Never raises; takes at most PATIENCE seconds."""
        began, looked_at = time.monotonic(), datetime.now(UTC)
        postgres, redis = UP, UP
        said: Said | None = None
        log: Log | None = None
        try:
            log = ask(self._to_redis, self._redis.ask, EACH)
        except Exception as error:
            redis = Server(False, asking_redis.reason(error))
        try:
            said = ask(self._to_postgres, self._postgres.ask, EACH)
        except Exception as error:
            postgres = Server(False, asking_postgres.reason(error))
        database = said.database if said else None
        if said and redis.up:
            database = self._absence.noted(said.database)
            generation, left = said.generation, began + PATIENCE - time.monotonic()
            # Redis may be gone by now, or busy: then this look does not tell.
            with suppress(Exception):
                dirty = ask(self._to_redis, lambda: self._redis.dirty_minutes(generation), left)
                rollup = replace(database.rollup, dirty_minutes=dirty)
                database = replace(database, rollup=rollup)
        else:  # no process works; once both are back, it takes them a moment
            self._absence.forget()
        took = time.monotonic() - began
        at = said.at if said else looked_at
        return Facts(at, postgres, redis, database, log, took, looked_at)

    def close(self) -> None:
        """Close both connections, unless a server that hangs still uses one."""
        for server, asking in ((self._to_postgres, self._postgres), (self._to_redis, self._redis)):
            with suppress(Exception):  # then the end of the process closes it
                ask(server, asking.close, EACH)
            server.shutdown(wait=False)
