"""Taking a ride: the ride, its staged record and its idempotency key, in one transaction."""

from decimal import Decimal
from functools import partial
from typing import NamedTuple

import psycopg

from api import writing
from api.pool import Pool
from api.prepared import Prepared, Repeated, Row
from api.writing import TryLater
from rocket_rides.revisions import refusal
from unified_log.tracing import NO_TRACE, Trace

# One statement, so one round trip, and one transaction without a BEGIN. The INSERT into rides draws
# the id in the transaction that stages the record: the streamer's barrier relies on that. The
# record gets the same id. stage() wakes the streamer, if it sleeps, when this commits.
INSERT_RIDE = """
    WITH ride AS (
        INSERT INTO rides (distance) VALUES ($1) RETURNING id, distance
    )
"""
STAGE = """
    SELECT id, distance,
           stage(id, 'ride.create', jsonb_build_object('id', id, 'distance', distance), $2, $3)
    FROM ride
"""
TAKE = INSERT_RIDE + STAGE
# If the key was used before, the whole statement fails, so no ride is taken. A second request with
# the same key waits here until the first has ended. Looking the key up first would cost another
# round trip, and would predicate-lock a page of the index that others insert into.
TAKE_UNDER_KEY = f"""
    {INSERT_RIDE}, used AS (
        INSERT INTO idempotency_keys (key, distance, ride_id) SELECT $4, distance, id FROM ride
    )
    {STAGE}
"""  # noqa: S608 (no value is put in)
# A session that is killed while it waits for the synchronous standby has already committed here. No
# replay may report such a ride before the standby has it: so this lookup emits an empty WAL record,
# and waits, too.
FIND_KEY = """
    SELECT ride_id, distance FROM idempotency_keys, pg_logical_emit_message(true, 'replay', '')
    WHERE key = $1
"""

TAKE_RIDE = Prepared("take_ride", TAKE)
TAKE_RIDE_UNDER_KEY = Prepared("take_ride_under_key", TAKE_UNDER_KEY, "idempotency_keys_pkey")
FIND_RIDE_OF_KEY = Prepared("find_ride_of_key", FIND_KEY)
KEYS = "idempotency_keys"
FENCE = "idempotency_keys_fence"  # against keys that go to another cell: see `cells.router.keys`


class Ride(NamedTuple):
    """A taken ride; `distance` is in metres. `replayed`: an earlier request took it."""

    id: int
    distance: Decimal
    replayed: bool = False


class KeyReused(Exception):
    """The key was already used for a ride of another distance."""


def take(pool: Pool, distance: Decimal, key: str | None, trace: Trace | None = None) -> Ride:
    """Take a ride of `distance` metres, or find the one that `key` has already taken.

    Its record carries the `trace`. Without a key, nothing is retried after a lost connection: the
    ride could be taken twice. Raises KeyReused or TryLater.
    """
    once = partial(_take_once, distance=distance, key=key, trace=trace)
    return writing.write(pool, once, "ride", is_repeatable=key is not None)


def _take_once(
    connection: psycopg.Connection, distance: Decimal, key: str | None, trace: Trace | None
) -> Ride | None:
    """The ride; None if its key was used before, and has been deleted since."""
    values = [str(distance), *(trace or NO_TRACE)]
    if key is None:
        return _ride(*TAKE_RIDE(connection, *values))
    try:
        return _ride(*TAKE_RIDE_UNDER_KEY(connection, *values, key))
    except Repeated:
        pass
    except psycopg.errors.CheckViolation as refused:
        if refused.diag.constraint_name != FENCE:
            raise
        moved = "this key was moved to another cell, or is being moved"
        raise TryLater(moved, "ride", maybe_taken=True) from None
    except psycopg.errors.LockNotAvailable as refused:
        if KEYS not in (refused.diag.context or ""):
            raise  # for another lock: `write` knows whether an earlier attempt may have taken it
        # An earlier request with this key is under way, and may take the ride.
        raise TryLater(refusal(refused), "ride", maybe_taken=True) from None
    used = writing.find(FIND_RIDE_OF_KEY, connection, key, "ride")
    if not used:
        return None
    ride = _ride(*used)
    if ride.distance != distance:
        raise KeyReused
    return ride._replace(replayed=True)


def _ride(row: Row) -> Ride:
    ride_id, distance, *_ = row  # and what stage() returns, which is nothing
    return Ride(int(ride_id), Decimal(distance.decode()))
