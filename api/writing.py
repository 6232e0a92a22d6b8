"""Writing a row and its staged record: one transaction, tried again while that is safe.

A statement is a transaction by itself, and SERIALIZABLE (`api.database`).
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from psycopg import errors
from sqlalchemy import Connection, CursorResult, Row, TextClause
from sqlalchemy.exc import DBAPIError, IntegrityError

from api.database import NOT_REPLICATED, PATIENCE, Database, NoConnection, cause
from rocket_rides.revisions import refusal
from unified_log.waiting import delays

ATTEMPTS = 10
FIRST_PAUSE = 0.005  # seconds
LONGEST_PAUSE = 0.1

CONFLICTS = (errors.SerializationFailure, errors.DeadlockDetected)


class TryLater(Exception):
    """What was sent, such as a ride, can't be taken now, for `reason`.

    If `maybe_taken`, a client finds out by repeating the request, for a ride with the same key.
    """

    def __init__(self, reason: str, what: str, maybe_taken: bool) -> None:
        outcome = f"the {what} may have been taken" if maybe_taken else f"the {what} was not taken"
        super().__init__(f"{reason}; {outcome}")
        self.what = what
        self.maybe_taken = maybe_taken


class Repeated(Exception):
    """An earlier request has written what this one would write."""


class NotReplicated(Exception):
    """A commit did not wait for the synchronous standby, so nobody knows whether it has it."""


class Vanished(Exception):
    """What the earlier request had written was deleted while we looked for it."""


class Attempts:
    """Attempts to write a `what`, such as a ride, each of which is a block with a connection.

    A conflict with other transactions ends a block without an exception, for another attempt; so
    does a lost connection if the request `is_repeatable`, that is, if it finds what it has already
    written. All this takes less than three seconds where no connection must be opened, or five if
    the server is frozen; but a commit waits for a synchronous standby for as long as it takes.
    """

    def __init__(self, database: Database, what: str, is_repeatable: bool) -> None:
        self._database, self._what, self._is_repeatable = database, what, is_repeatable
        self._deadline = time.monotonic() + PATIENCE
        self._pauses = islice(delays(FIRST_PAUSE, LONGEST_PAUSE), ATTEMPTS - 1)
        self._reason, self._maybe_taken = f"too many {what}s at once", False

    @contextmanager
    def another(self) -> Iterator[Connection]:
        """The block of one attempt; it passes on what is no error of the database.

        Raises TryLater if the database refuses, or if no other attempt may or can follow.
        """
        try:
            with self._database.connect(self._deadline) as connection:
                yield connection
                return
        except NoConnection as reason:
            raise self._try_later(str(reason)) from None
        except NotReplicated:
            self._lost()
        except Vanished:
            pass
        except DBAPIError as error:
            if error.connection_invalidated:
                self._lost()
            elif not isinstance(error.orig, CONFLICTS):  # the server refused, and rolled back
                raise self._try_later(refusal(cause(error))) from None
        pause = next(self._pauses, None)
        if pause is None or time.monotonic() > self._deadline:
            raise self._try_later(self._reason) from None
        time.sleep(pause)

    def _lost(self) -> None:
        self._reason, self._maybe_taken = "the connection to the database was lost", True
        if not self._is_repeatable:
            raise self._try_later(self._reason) from None

    def _try_later(self, reason: str) -> TryLater:
        return TryLater(reason, self._what, self._maybe_taken)


def run(
    connection: Connection, statement: TextClause, values: Mapping[str, Any], once: str = ""
) -> CursorResult[Any]:
    """Execute a statement: a transaction by itself.

    By the constraint `once`, if any, Postgres notices that a request is repeated. Raises Repeated,
    NotReplicated or DBAPIError.
    """
    try:
        result = connection.execute(statement, values)
    except IntegrityError as error:
        if error.connection_invalidated:  # it was lost after the server had said that
            raise
        refused = cause(error)
        if (type(refused), refused.diag.constraint_name) != (errors.UniqueViolation, once):
            raise
        raise Repeated from None
    if connection.info.get(NOT_REPLICATED):
        connection.invalidate()
        raise NotReplicated
    return result


def find(
    connection: Connection, statement: TextClause, values: Mapping[str, Any], what: str
) -> Row[Any]:
    """The row that an earlier request has written.

    Raises Vanished, TryLater if the server refuses to look, or what another attempt may get over.
    """
    try:
        found = run(connection, statement, values).one_or_none()
    except DBAPIError as error:
        if error.connection_invalidated or isinstance(error.orig, CONFLICTS):
            raise
        raise TryLater(refusal(cause(error)), what, maybe_taken=True) from None  # by that request
    if found is None:
        raise Vanished
    return found
