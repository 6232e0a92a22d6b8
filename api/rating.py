"""Rating a ride: the rating and its staged record, in one transaction, once for each ride.

The ride is the natural key: a repeated request finds the rating that is there, so it needs no
Idempotency-Key.
"""

from psycopg import errors
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from werkzeug.exceptions import Conflict, NotFound

from api import writing
from api.database import Database, cause
from api.writing import Attempts, Repeated, TryLater
from rocket_rides.revisions import refusal
from unified_log.tracing import NO_TRACE, Trace

ONCE = "ratings_ride_id_key"  # the index in which two ratings of a ride meet
# One statement, as for a ride (`api.booking`). Without such a ride it inserts nothing.
RATE = text("""
    WITH rating AS (
        INSERT INTO ratings (ride_id, stars) SELECT id, :stars FROM rides WHERE id = :ride_id
        RETURNING id, ride_id, stars
    )
    SELECT stars, stage(
        id, 'rating.create', jsonb_build_object('id', id, 'ride_id', ride_id, 'stars', stars),
        :traceparent, :tracestate
    )
    FROM rating
""")
# It waits for the synchronous standby, as FIND_KEY in `api.booking` does.
FIND = text("""
    SELECT stars FROM ratings, pg_logical_emit_message(true, 'replay', '')
    WHERE ride_id = :ride_id
""")
# So does this. A primary that was frozen and replaced may wake up, and answer until it is demoted:
# it lacks the newest rides, and has no standby.
AGREED = text("SELECT pg_logical_emit_message(true, 'no ride', '')")


class NoSuchRide(NotFound):
    """There is no ride of this number."""

    def __init__(self, ride_id: int) -> None:
        super().__init__(f"there is no ride {ride_id}")


def rate(database: Database, ride_id: int, stars: int, trace: Trace | None = None) -> bool:
    """Give a ride these stars; False if it has them already.

    Its record carries the `trace`. Raises NoSuchRide, Conflict when it has
    others, or TryLater.
    """
    attempts = Attempts(database, "rating", is_repeatable=True)
    while True:
        with attempts.another() as connection:
            try:
                _rate(connection, ride_id, stars, trace)
                return True
            except Repeated:
                _require_same(connection, ride_id, stars)
                return False


def _rate(connection: Connection, ride_id: int, stars: int, trace: Trace | None) -> None:
    parent, state = trace or NO_TRACE
    values = {"ride_id": ride_id, "stars": stars, "traceparent": parent, "tracestate": state}
    try:
        rated = writing.run(connection, RATE, values, ONCE).one_or_none()
    except DBAPIError as error:
        refused = cause(error)
        if isinstance(refused, errors.LockNotAvailable) and ONCE in (refused.diag.context or ""):
            # Another request is rating the ride, and may succeed.
            raise TryLater(refusal(refused), "rating", maybe_taken=True) from None
        raise  # `Attempts` knows whether an earlier attempt may have taken it
    if rated is None:
        writing.run(connection, AGREED, {})
        raise NoSuchRide(ride_id)


def _require_same(connection: Connection, ride_id: int, stars: int) -> None:
    """Raise Conflict if an earlier request has given the ride other stars."""
    found = writing.find(connection, FIND, {"ride_id": ride_id}, "rating")
    if found.stars != stars:
        raise Conflict(f"ride {ride_id} was already rated: {found.stars} of 5 stars")
