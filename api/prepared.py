"""The statements of a POST, each in one call of libpq.

psycopg's `execute` sends, polls and receives in a handful of calls, between which the worker's
other threads take turns: under load a POST then takes 14 to 19 % more of the API's processor time,
and a tenth fewer are answered.
"""

from collections.abc import Iterable
from weakref import WeakSet, ref

import psycopg
from psycopg import errors, pq

from rocket_rides import telemetry

Row = list[bytes]

# The server's function that gives notice when the wait for a synchronous standby was cancelled:
# then the commit may be on this server only.
NOT_REPLICATED = "SyncRepWaitForLSN"
_not_replicated: WeakSet[psycopg.Connection] = WeakSet()


def heed_notices(connection: psycopg.Connection) -> None:
    """Have a statement raise when its commit did not wait for the synchronous standby."""
    this = ref(connection)

    def heed(notice: errors.Diagnostic) -> None:
        if notice.source_function == NOT_REPLICATED and (noticed := this()):
            _not_replicated.add(noticed)

    connection.add_notice_handler(heed)


class Repeated(Exception):
    """An earlier request has written what this one would write."""


class Prepared:
    """A statement with parameters $1, $2 and so on, prepared on each connection at its first use.

    Its values, and the columns of its rows, are text; a value may be null, a column is not. By the
    constraint `key`, if any, Postgres notices that a request is repeated.
    """

    def __init__(self, name: str, statement: str, key: str = "") -> None:
        self._called, self._name = name, name.encode()
        self._statement, self._key = statement.encode(), key
        self._prepared_on: WeakSet[psycopg.Connection] = WeakSet()

    def __call__(self, connection: psycopg.Connection, *values: str | None) -> list[Row]:
        """Run it, in a transaction of its own. Raises Repeated, or psycopg.Error."""
        with telemetry.statement(self._called, connection):  # a repetition is no failure
            try:
                return self._run(connection, values)
            except errors.UniqueViolation as refused:
                if refused.diag.constraint_name != self._key:
                    raise
        raise Repeated

    def _run(self, connection: psycopg.Connection, values: Iterable[str | None]) -> list[Row]:
        libpq = connection.pgconn
        if connection not in self._prepared_on:
            _checked(libpq.prepare(self._name, self._statement))
            self._prepared_on.add(connection)
        # The type hint of exec_prepared leaves out that a value may be null.
        texts = [None if value is None else value.encode() for value in values]
        result = _checked(libpq.exec_prepared(self._name, texts))  # type: ignore[arg-type]
        if connection in _not_replicated:
            connection.close()
            raise psycopg.OperationalError("it is not known whether the standby has this commit")
        columns = range(result.nfields)
        return [
            [_not_null(result.get_value(row, column)) for column in columns]
            for row in range(result.ntuples)
        ]


def _checked(result: pq.abc.PGresult) -> pq.abc.PGresult:
    if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        return result
    if result.error_field(pq.DiagnosticField.SQLSTATE) is None:  # it is libpq's own
        raise psycopg.OperationalError(result.get_error_message())
    raise errors.error_from_result(result)


def _not_null(value: bytes | None) -> bytes:
    if value is None:
        raise psycopg.DataError("a column that is never null is null")
    return value
