"""The `xmin` horizon: only rows of transactions older than every open one, by transaction id."""

import psycopg

from tests.conformance.naive import Naive, Row

DUE = """
    SELECT outbox.xid::text::bigint, outbox.id, key FROM outbox, relay
    WHERE outbox.xid < pg_snapshot_xmin(pg_current_snapshot())
      AND (outbox.xid, outbox.id) > (relay.xid::text::xid8, relay.id)
    ORDER BY outbox.xid, outbox.id
"""


class Horizon(Naive):
    """Any open transaction that has an id holds it up, whatever it writes, in any database."""

    def due(self, connection: psycopg.Connection) -> list[Row]:
        return connection.execute(DUE).fetchall()
