"""Writing a row and its staged record: one transaction, tried again while that is safe.

Every transaction here is SERIALIZABLE: `api.pool` makes it the default of its sessions.
"""

import time
from collections.abc import Callable
from itertools import islice
from typing import TypeVar

import psycopg

from api.pool import PATIENCE, Pool, get_connection, give_back
from api.prepared import Prepared, Row
from rocket_rides.revisions import refusal
from unified_log.waiting import delays

ATTEMPTS = 10
FIRST_PAUSE = 0.005  # seconds
LONGEST_PAUSE = 0.1

CONFLICTS = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)

T = TypeVar("T")


class TryLater(Exception):
    """What was sent, such as a ride, can't be taken now, for `reason`.

    If `maybe_taken`, a client finds out by repeating the request, for a ride with the same key.
    """

    def __init__(self, reason: str, what: str, maybe_taken: bool) -> None:
        outcome = f"the {what} may have been taken" if maybe_taken else f"the {what} was not taken"
        super().__init__(f"{reason}; {outcome}")
        self.what = what
        self.maybe_taken = maybe_taken


def find(statement: Prepared, connection: psycopg.Connection, key: str, what: str) -> list[Row]:
    """What an earlier request has written under this key, if it is still there.

    Raises TryLater if the server refuses to look, or an error after which `write` tries again.
    """
    try:
        return statement(connection, key)
    except CONFLICTS:
        raise
    except psycopg.Error as error:
        if connection.closed:
            raise
        raise TryLater(refusal(error), what, maybe_taken=True) from None  # by that request


def write(
    pool: Pool,
    once: Callable[[psycopg.Connection], T | None],
    what: str,
    is_repeatable: bool,
) -> T:
    """Call `once`, which writes in a transaction of its own, until it has an answer.

    Serialization failures and deadlocks are retried, and so is a lost connection if `once`
    `is_repeatable`, that is, finds what it has already written. If that does not help, and for any
    other psycopg.Error, raises TryLater; other exceptions of `once` pass through. All this takes
    less than three seconds; but a commit waits for a synchronous standby for as long as it takes.
    """
    deadline = time.monotonic() + PATIENCE
    reason, maybe_taken = f"too many {what}s at once", False
    for pause in islice(delays(FIRST_PAUSE, LONGEST_PAUSE), ATTEMPTS):
        try:
            connection = get_connection(pool, deadline)
        except psycopg.OperationalError as reason_for_none:
            raise TryLater(str(reason_for_none), what, maybe_taken) from None
        try:
            if (written := once(connection)) is not None:
                return written
        except CONFLICTS:
            pass
        except psycopg.Error as error:
            if not connection.closed:  # the server refused, for whatever reason, and rolled back
                raise TryLater(refusal(error), what, maybe_taken) from None
            reason, maybe_taken = "the connection to the database was lost", True
            if not is_repeatable:
                break
        finally:
            give_back(pool, connection)
        if time.monotonic() > deadline:
            break
        time.sleep(pause)
    raise TryLater(reason, what, maybe_taken)
