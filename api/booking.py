"""Taking a ride: the ride, its staged record and its idempotency key, in one transaction."""

from decimal import Decimal
from typing import NamedTuple

from psycopg import errors
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from api import writing
from api.database import Database, cause
from api.writing import Attempts, Repeated, TryLater
from rocket_rides.revisions import refusal
from unified_log.tracing import NO_TRACE, Trace

# One statement, so one round trip, and one transaction without a BEGIN. The INSERT into rides draws
# the id in the transaction that stages the record: the streamer's barrier relies on that. The
# record gets the same id. stage() wakes the streamer, if it sleeps, when this commits.
TAKE = text("""
    WITH ride AS (
        INSERT INTO rides (distance) VALUES (:distance) RETURNING id, distance
    )
    SELECT id, distance, stage(
        id, 'ride.create', jsonb_build_object('id', id, 'distance', distance),
        :traceparent, :tracestate
    )
    FROM ride
""")
# If the key was used before, the whole statement fails, so no ride is taken. A second request with
# the same key waits here until the first has ended. Looking the key up first would cost another
# round trip, and would predicate-lock a page of the index that others insert into.
TAKE_UNDER_KEY = text("""
    WITH ride AS (
        INSERT INTO rides (distance) VALUES (:distance) RETURNING id, distance
    ), used AS (
        INSERT INTO idempotency_keys (key, distance, ride_id) SELECT :key, distance, id FROM ride
    )
    SELECT id, distance, stage(
        id, 'ride.create', jsonb_build_object('id', id, 'distance', distance),
        :traceparent, :tracestate
    )
    FROM ride
""")
# A session that is killed while it waits for the synchronous standby has already committed here. No
# replay may report such a ride before the standby has it: so this lookup emits an empty WAL record,
# and waits, too.
FIND_KEY = text("""
    SELECT ride_id AS id, distance
    FROM idempotency_keys, pg_logical_emit_message(true, 'replay', '')
    WHERE key = :key
""")
KEYS = "idempotency_keys"
ONCE = "idempotency_keys_pkey"  # the index in which two uses of a key meet
FENCE = "idempotency_keys_fence"  # against keys that go to another cell: see `cells.router.keys`


class Ride(NamedTuple):
    """A taken ride; `distance` is in metres. `replayed`: an earlier request took it."""

    id: int
    distance: Decimal
    replayed: bool = False


class KeyReused(Exception):
    """The key was already used for a ride of another distance."""


def take(
    database: Database, distance: Decimal, key: str | None, trace: Trace | None = None
) -> Ride:
    """Take a ride of `distance` metres, or find the one that `key` has already taken.

    Its record carries the `trace`. Without a key, nothing is retried after a lost connection: the
    ride could be taken twice. Raises KeyReused or TryLater.
    """
    attempts = Attempts(database, "ride", is_repeatable=key is not None)
    while True:
        with attempts.another() as connection:
            if key is None:
                return _take(connection, distance, trace)
            try:
                return _take_under_key(connection, distance, key, trace)
            except Repeated:
                return _find(connection, distance, key)


def _take(connection: Connection, distance: Decimal, trace: Trace | None) -> Ride:
    parent, state = trace or NO_TRACE
    values = {"distance": distance, "traceparent": parent, "tracestate": state}
    taken = writing.run(connection, TAKE, values).one()
    return Ride(taken.id, taken.distance)


def _take_under_key(
    connection: Connection, distance: Decimal, key: str, trace: Trace | None
) -> Ride:
    parent, state = trace or NO_TRACE
    values = {"distance": distance, "key": key, "traceparent": parent, "tracestate": state}
    try:
        taken = writing.run(connection, TAKE_UNDER_KEY, values, ONCE).one()
    except DBAPIError as error:
        refused = cause(error)
        if refused.diag.constraint_name == FENCE:
            moved = "this key was moved to another cell, or is being moved"
            raise TryLater(moved, "ride", maybe_taken=True) from None
        if isinstance(refused, errors.LockNotAvailable) and KEYS in (refused.diag.context or ""):
            # An earlier request with this key is under way, and may take the ride.
            raise TryLater(refusal(refused), "ride", maybe_taken=True) from None
        raise  # `Attempts` knows whether an earlier attempt may have taken it
    return Ride(taken.id, taken.distance)


def _find(connection: Connection, distance: Decimal, key: str) -> Ride:
    """The ride that an earlier request has taken under this key."""
    found = writing.find(connection, FIND_KEY, {"key": key}, "ride")
    if found.distance != distance:
        raise KeyReused
    return Ride(found.id, found.distance, replayed=True)
