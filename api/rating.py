"""Rating a ride: the rating and its staged record, in one transaction, once for each ride.

The ride is the natural key: a repeated request finds the rating that is there, so it needs no
Idempotency-Key.
"""

from functools import partial

import psycopg
from werkzeug.exceptions import Conflict, NotFound

from api import writing
from api.pool import Pool
from api.prepared import Prepared, Repeated
from api.writing import TryLater
from rocket_rides.revisions import refusal
from unified_log.tracing import NO_TRACE, Trace

ONCE = "ratings_ride_id_key"  # the index in which two ratings of a ride meet
# One statement, as for a ride (`api.booking`). Without such a ride it inserts nothing.
RATE = """
    WITH rating AS (
        INSERT INTO ratings (ride_id, stars) SELECT id, $2 FROM rides WHERE id = $1
        RETURNING id, ride_id, stars
    )
    SELECT stars, stage(
        id, 'rating.create', jsonb_build_object('id', id, 'ride_id', ride_id, 'stars', stars),
        $3, $4
    )
    FROM rating
"""
# It waits for the synchronous standby, as FIND_KEY in `api.booking` does.
FIND = """
    SELECT stars FROM ratings, pg_logical_emit_message(true, 'replay', '') WHERE ride_id = $1
"""

RATE_RIDE = Prepared("rate_ride", RATE, ONCE)
FIND_RATING = Prepared("find_rating", FIND)


def rate(pool: Pool, ride_id: int, stars: int, trace: Trace | None = None) -> bool:
    """Give a ride these stars; False if it has them already.

    Its record carries the `trace`. Raises NotFound without such a ride, Conflict when it has
    others, or TryLater.
    """
    once = partial(_rate_once, ride_id=ride_id, stars=stars, trace=trace)
    return writing.write(pool, once, "rating", is_repeatable=True)


def _rate_once(
    connection: psycopg.Connection, ride_id: int, stars: int, trace: Trace | None
) -> bool | None:
    try:
        if RATE_RIDE(connection, str(ride_id), str(stars), *(trace or NO_TRACE)):
            return True
        raise NotFound(f"there is no ride {ride_id}")
    except Repeated:
        pass
    except psycopg.errors.LockNotAvailable as refused:
        if ONCE not in (refused.diag.context or ""):
            raise  # for another lock: `write` knows whether an earlier attempt may have taken it
        # Another request is rating the ride, and may succeed.
        raise TryLater(refusal(refused), "rating", maybe_taken=True) from None
    for [found] in writing.find(FIND_RATING, connection, str(ride_id), "rating"):
        if int(found) != stars:
            raise Conflict(f"ride {ride_id} was already rated: {found.decode()} of 5 stars")
        return False
    return None  # somebody has deleted it meanwhile
