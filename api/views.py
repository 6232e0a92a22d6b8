"""The routes: what a client may ask for, and what it gets."""

import logging
from pathlib import Path
from typing import LiteralString

import psycopg
from flask import Blueprint, Response, current_app, request
from psycopg.abc import Params
from werkzeug.exceptions import NotFound, ServiceUnavailable

from api import booking, consumers, parameters, periods, rating
from api.consumers import Answer
from api.lean import ExactJson
from api.pool import Pool, borrowed
from api.readiness import require_readiness
from rocket_rides.receipts import STATE, WEBHOOK_ID
from unified_log.errors import Unavailable
from unified_log.log import LARGEST_ID

logger = logging.getLogger("api")

routes = Blueprint("routes", __name__)

DESCRIPTION = Path(__file__).with_name("openapi.json").read_bytes()

FIND_RIDE = "SELECT id, distance, created_at FROM rides WHERE id = %s"
# The ride and what became of its receipt; outcome is null until it is delivered or dead. Attempts
# are those that count towards RECEIPT_ATTEMPTS.
FIND_RECEIPT = f"""
    SELECT rides.id AS ride_id, {STATE} AS state, outcome,
           coalesce(attempts - excused, 0) AS attempts, reason,
           {WEBHOOK_ID} AS webhook_id, first_at AS first_attempt_at, decided_at,
           replay_at IS NOT NULL AS replay, dropped_at IS NOT NULL AS dropped
    FROM rides CROSS JOIN receipts_state LEFT JOIN receipts ON ride_id = rides.id
    WHERE rides.id = %s
"""  # noqa: S608


def pool() -> Pool:
    """This process's connections to Postgres."""
    opened: Pool = current_app.extensions["pool"]
    return opened


@routes.post("/rides")
def take_ride() -> Response:
    """Take a ride: 201, and 201 with the first answer again when its key is repeated."""
    environ = request.environ
    distance = parameters.ride_distance(environ)
    key = parameters.idempotency_key(environ)
    ride = booking.take(pool(), distance, key, parameters.trace(environ))
    logger.debug("took ride %d", ride.id, extra={"ride_id": ride.id})
    message = f"Your ride of {ride.distance} m is booked"
    headers = {"Location": f"/rides/{ride.id}"}
    if ride.replayed:
        headers["Idempotent-Replayed"] = "true"
    content = {"message": message, "ride": {"id": ride.id, "distance": ride.distance}}
    return ExactJson.answer(content, 201, headers)


@routes.get("/rides/<int:ride_id>")
def show_ride(ride_id: int) -> Answer:
    """One ride."""
    rows = _query(FIND_RIDE, [ride_id]) if ride_id <= LARGEST_ID else []
    if not rows:
        raise NotFound(f"there is no ride {ride_id}")
    return {"ride": rows[0]}


@routes.post("/rides/<int:ride_id>/rating")
def rate_ride(ride_id: int) -> Response:
    """Rate a ride, once: 201, and 200 when it has these stars already."""
    stars, trace = parameters.stars(request.environ), parameters.trace(request.environ)
    if ride_id > LARGEST_ID:
        raise NotFound(f"there is no ride {ride_id}")
    is_new = rating.rate(pool(), ride_id, stars, trace)
    content = {"rating": {"ride_id": ride_id, "stars": stars}}
    return ExactJson.answer(content, 201 if is_new else 200, {})


@routes.get("/rides/<int:ride_id>/receipt")
def show_receipt(ride_id: int) -> Answer:
    """What came of a ride's receipt so far."""
    rows = _query(FIND_RECEIPT, [ride_id]) if ride_id <= LARGEST_ID else []
    if not rows:
        raise NotFound(f"there is no ride {ride_id}")
    [receipt] = rows
    return {"receipt": receipt}


@routes.get("/consumers")
def show_consumers() -> Answer:
    """Each reader of the log: its kind, where it stands, its lag, its total and newest reset."""
    with borrowed(pool()) as connection:
        return {"consumers": consumers.show(connection)}


@routes.get("/hours")
def show_hours() -> Answer:
    """The rides of each hour, and up to which ride they are complete, all at one moment."""
    return _sums(periods.HOUR)


@routes.get("/days")
def show_days() -> Answer:
    """The same for days, in UTC."""
    return _sums(periods.DAY)


@routes.get("/healthz")
def healthz() -> Answer:
    """The process is alive."""
    return {"status": "ok"}


@routes.get("/readyz")
def readyz() -> Answer | Response:
    """Rides can be taken: the database answers, its schema is current, and it is writable."""
    with borrowed(pool()) as connection:
        try:
            require_readiness(connection)
        except Unavailable as reason:
            raise ServiceUnavailable(str(reason)) from None
    return {"status": "ready"}


@routes.get("/openapi.json")
def describe() -> Response:
    """A description of all these routes, for programs."""
    return Response(DESCRIPTION, mimetype="application/json")


def _sums(period: periods.Period) -> Answer:
    asked = period.asked_for(request.args)
    values = {"period": period.name, **asked._asdict()}
    return period.answer(_query(periods.SUMS, values))


def _query(statement: LiteralString, values: Params | None = None) -> list[Answer]:
    with borrowed(pool()) as connection:
        cursor = connection.cursor(row_factory=psycopg.rows.dict_row)
        return cursor.execute(statement, values).fetchall()
