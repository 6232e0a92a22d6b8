"""Statements that are run as often as rides are taken, in one call of libpq each.

psycopg's `execute` sends, polls and receives in a handful of calls, between which the worker's
other threads take turns: under load that costs more than all else that psycopg does.
"""

from weakref import WeakSet

import psycopg
from psycopg import errors, pq

Row = list[bytes]


class Prepared:
    """A statement with parameters $1, $2 and so on, prepared on each connection at its first use.

    Values go as text, and so do the columns of its rows come, none of them null.
    """

    def __init__(self, name: str, statement: str) -> None:
        self._name = name.encode()
        self._statement = statement.encode()
        self._prepared_on: WeakSet[psycopg.Connection] = WeakSet()

    def __call__(self, connection: psycopg.Connection, *values: str) -> list[Row]:
        """Run it, in a transaction of its own. Raises psycopg.Error."""
        libpq = connection.pgconn
        if connection not in self._prepared_on:
            _checked(libpq.prepare(self._name, self._statement))
            self._prepared_on.add(connection)
        result = _checked(libpq.exec_prepared(self._name, [value.encode() for value in values]))
        columns = range(result.nfields)
        return [
            [result.get_value(row, column) or b"" for column in columns]
            for row in range(result.ntuples)
        ]


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise errors.error_from_result(result)
    return result
