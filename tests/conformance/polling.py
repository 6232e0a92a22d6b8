"""`id > last`: asks again and again for rows with a higher id than the last one."""

import psycopg

from tests.conformance.naive import Naive, Row

DUE = "SELECT 0, id, key FROM outbox WHERE id > (SELECT id FROM relay) ORDER BY id"


class Polling(Naive):
    """A row that commits later under a lower id is never asked for."""

    def due(self, connection: psycopg.Connection) -> list[Row]:
        return connection.execute(DUE).fetchall()
