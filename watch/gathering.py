"""Gathering the facts: a few commands to Redis, one statement to Postgres, and Redis once more.

Redis is asked last for the dirty minutes, because Postgres knows in which of its sets they are.

It reads, and changes nothing. A server that is away is said to be, with a reason, and asked again
at the next time; one that hangs costs at most half of PATIENCE.
"""

import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from rocket_rides.settings import Settings
from watch import asking_postgres, asking_redis
from watch.absence import Absence
from watch.asking import Asker
from watch.asking_postgres import AskingPostgres, Said
from watch.asking_redis import AskingRedis
from watch.facts import UP, Facts, Log, Server

PATIENCE = 1.4  # seconds, for both servers
EACH = PATIENCE / 2


class Gatherer:
    """Gathers facts on connections of its own; for one thread at a time."""

    def __init__(self, config: Settings) -> None:
        self._postgres = AskingPostgres(config.postgres_url)
        self._redis = AskingRedis(config.log_url, config.stream_name)
        self._absence = Absence()
        self._ask_postgres, self._ask_redis = Asker("Postgres"), Asker("Redis")

    def gather(self) -> Facts:
        """The facts as of now. Never raises; takes at most PATIENCE seconds."""
        began, looked_at = time.monotonic(), datetime.now(UTC)
        postgres, redis = UP, UP
        said: Said | None = None
        log: Log | None = None
        try:
            log = self._ask_redis.ask(self._redis.ask, EACH)
        except Exception as error:
            redis = Server(False, asking_redis.reason(error))
        try:
            said = self._ask_postgres.ask(self._postgres.ask, EACH)
        except Exception as error:
            postgres = Server(False, asking_postgres.reason(error))
        database = said.database if said else None
        if said and redis.up:
            database = self._absence.noted(said.database)
            ick, left = said.ick, began + PATIENCE - time.monotonic()
            # Redis may be gone by now, or busy: then this look does not tell.
            with suppress(Exception):
                dirty = self._ask_redis.ask(lambda: self._redis.dirty_minutes(ick), left)
                rollup = replace(database.rollup, dirty_minutes=dirty)
                database = replace(database, rollup=rollup)
        else:  # nobody gets to work, and once both are back, not at once
            self._absence.forget()
        took = time.monotonic() - began
        at = said.at if said else looked_at
        return Facts(at, postgres, redis, database, log, took, looked_at)

    def close(self) -> None:
        """Close both connections, unless a server that hangs still uses one."""
        for ask, asking in (
            (self._ask_postgres, self._postgres),
            (self._ask_redis, self._redis),
        ):
            with suppress(Exception):  # then the end of the process closes it
                ask.ask(asking.close, EACH)
            ask.close()
