"""The routes: what a client may ask for, and what it gets."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, current_app
from flask.typing import ResponseReturnValue
from sqlalchemy import RowMapping, Select, func, select, true
from werkzeug.exceptions import ServiceUnavailable

from api import booking, consumers, feed, parameters, periods, rating
from api.consumers import Answer
from api.database import Database
from api.rating import NoSuchRide
from api.readiness import require_readiness
from api.tables import newest, receipts, receipts_state, rides
from api.traces import trace
from unified_log.errors import Unavailable
from unified_log.log import LARGEST_ID

logger = logging.getLogger("api")

routes = Blueprint("routes", __name__)

DESCRIPTION = Path(__file__).with_name("openapi.json").read_bytes()

# What became of a ride's receipt; the outcome is null until it is delivered or dead. Attempts are
# those that count towards RECEIPT_ATTEMPTS.
STATE = newest(receipts_state)
RECEIPT = select(
    rides.c.id.label("ride_id"),
    func.receipt_state(
        receipts.c.outcome,
        receipts.c.replay_at,
        receipts.c.lease,
        receipts.c.due_at,
        receipts.c.attempts,
    ).label("state"),
    receipts.c.outcome,
    func.coalesce(receipts.c.attempts - receipts.c.excused, 0).label("attempts"),
    receipts.c.reason,
    func.webhook_id(STATE.c.salt, rides.c.id, rides.c.distance, rides.c.created_at).label(
        "webhook_id"
    ),
    receipts.c.first_at.label("first_attempt_at"),
    receipts.c.decided_at,
    receipts.c.replay_at.is_not(None).label("replay"),
    receipts.c.dropped_at.is_not(None).label("dropped"),
).select_from(rides.join(STATE, true()).outerjoin(receipts, receipts.c.ride_id == rides.c.id))


def database() -> Database:
    """This worker's connections to Postgres."""
    found: Database = current_app.extensions["database"]
    return found


@routes.post("/rides")
def take_ride() -> ResponseReturnValue:
    """Take a ride: 201, and 201 with the first answer again when its key is repeated."""
    distance = parameters.ride_distance()
    key = parameters.idempotency_key()
    ride = booking.take(database(), distance, key, trace())
    logger.debug("took ride %d", ride.id, extra={"ride_id": ride.id})
    message = f"Your ride of {ride.distance} m is booked"
    headers = {"Location": f"/rides/{ride.id}"}
    if ride.replayed:
        headers["Idempotent-Replayed"] = "true"
    content = {"message": message, "ride": {"id": ride.id, "distance": ride.distance}}
    return content, 201, headers


@routes.get("/rides/<int:ride_id>")
def show_ride(ride_id: int) -> Answer:
    """One ride."""
    columns = select(rides.c.id, rides.c.distance, rides.c.created_at)
    return {"ride": _of_ride(ride_id, columns)}


@routes.post("/rides/<int:ride_id>/rating")
def rate_ride(ride_id: int) -> ResponseReturnValue:
    """Rate a ride, once: 201, and 200 when it has these stars already."""
    stars = parameters.stars()
    if ride_id > LARGEST_ID:
        raise NoSuchRide(ride_id)
    is_new = rating.rate(database(), ride_id, stars, trace())
    content = {"rating": {"ride_id": ride_id, "stars": stars}}
    return content, 201 if is_new else 200


@routes.get("/rides/<int:ride_id>/receipt")
def show_receipt(ride_id: int) -> Answer:
    """What came of a ride's receipt so far."""
    return {"receipt": _of_ride(ride_id, RECEIPT)}


@routes.get("/consumers")
def show_consumers() -> Answer:
    """Each reader of the log: its kind, where it stands, its lag, its total and newest reset."""
    with database().connect() as connection:
        return {"consumers": consumers.show(connection)}


@routes.get("/hours")
def show_hours() -> Answer:
    """The rides of each hour, and up to which ride they are complete, all at one moment."""
    return _sums(periods.HOUR)


@routes.get("/days")
def show_days() -> Answer:
    """The same for days, in UTC."""
    return _sums(periods.DAY)


@routes.get("/log")
def show_log() -> Response:
    """A page of the log's records, in order, and where the next one is."""
    asked = feed.asked_for()
    with database().connect() as connection:
        return feed.page(connection, asked)


@routes.get("/healthz")
def healthz() -> Answer:
    """The process is alive."""
    return {"status": "ok"}


@routes.get("/readyz")
def readyz() -> Answer:
    """Rides can be taken: the database answers, its schema serves this code, and it is writable."""
    with database().connect() as connection:
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
    asked = period.asked_for(parameters.moment("from"), parameters.moment("to"))
    return period.answer(_query(period.sums(asked)))


def _of_ride(ride_id: int, columns: Select[Any]) -> Answer:
    """These columns of a ride. Raises NoSuchRide."""
    found = _query(columns.where(rides.c.id == ride_id)) if ride_id <= LARGEST_ID else []
    if not found:
        raise NoSuchRide(ride_id)
    return dict(found[0])


def _query(statement: Select[Any]) -> Sequence[RowMapping]:
    with database().connect() as connection:
        return connection.execute(statement).mappings().all()
