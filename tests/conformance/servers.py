"""Servers of the suite's own: a restore takes a whole Postgres back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg

from demo.embedded.servers import Postgres, Redis
from rocket_rides.settings import DATABASE_NAME
from tests.support.clusters import cluster
from tests.support.folders import short_folder

# Autovacuum's transactions have ids, for which a horizon waits.
SETTINGS = {"max_prepared_transactions": "10", "autovacuum": "off"}


class Servers(NamedTuple):
    postgres: Postgres
    redis: Redis

    def url(self, database: str) -> str:
        return self.postgres.url.replace(f"/{DATABASE_NAME}", f"/{database}")

    def administer(self, statement: str) -> None:
        with psycopg.connect(self.postgres.url, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def servers() -> Iterator[Servers]:
    with cluster(SETTINGS) as postgres, short_folder() as folder:
        redis = Redis(folder / "data", folder / "run")
        try:
            postgres.start()
            redis.start()
            yield Servers(postgres, redis)
        finally:
            redis.stop()
