"""The Flask application: JSON in every answer, errors included."""

from typing import Any

import msgspec
import psycopg
from flask import Flask, Response, jsonify
from flask.json.provider import JSONProvider
from psycopg_pool import PoolTimeout
from werkzeug.exceptions import HTTPException
from werkzeug.routing import IntegerConverter

from api import booking
from api.outages import Outages
from api.pool import UNREACHABLE, open_pool
from api.slow_clients import SlowClients
from api.views import routes
from rocket_rides import settings
from rocket_rides.database import refusal
from rocket_rides.process import end_with_parent, log_to_stdout

RETRY_AFTER = {"Retry-After": "1"}


class ExactJson(JSONProvider):
    """JSON in which a decimal is a number with all its digits."""

    _encoder = msgspec.json.Encoder(decimal_format="number")

    def dumps(self, obj: Any, **_: Any) -> str:
        return self._encoder.encode(obj).decode() + "\n"

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return msgspec.json.decode(s)


class AsciiInteger(IntegerConverter):
    """A number in a path, with no digits but these."""

    regex = "[0-9]+"


def create_app() -> Flask:
    """One worker's application, with a pool of connections of its own."""
    config = settings.load()
    log_to_stdout(config.log_level)
    end_with_parent()
    app = Flask(__name__, static_folder=None)
    app.config.update(PROVIDE_AUTOMATIC_OPTIONS=False)
    app.json = ExactJson(app)
    app.url_map.merge_slashes = False  # a redirect would answer in HTML
    app.url_map.converters["int"] = AsciiInteger
    app.register_blueprint(routes)
    app.register_error_handler(HTTPException, _refused)
    app.register_error_handler(booking.TryLater, _try_later)
    app.register_error_handler(psycopg.Error, _unavailable)
    app.after_request(Outages().note)
    app.extensions["pool"] = open_pool(config)
    app.extensions["slow_clients"] = SlowClients(config.api_port, config.api_client_timeout)
    app.extensions["slow_clients"].watch()
    return app


def _refused(error: HTTPException) -> Response:
    response = jsonify(message=error.description)
    response.status_code = error.code or 500
    for name, value in error.get_headers():
        if name.lower() not in {"content-type", "content-length"}:
            response.headers[name] = value
    if response.status_code == 503:
        response.headers.update(RETRY_AFTER)
    return response


def _try_later(reason: booking.TryLater) -> tuple[dict[str, str], int, dict[str, str]]:
    return {"message": str(reason)}, 503, RETRY_AFTER


def _unavailable(error: psycopg.Error) -> tuple[dict[str, str], int, dict[str, str]]:
    """For routes that only read; of a ride it is to be said whether it was taken (`booking`)."""
    reason = f"the database is not available: {refusal(error)}"
    message = UNREACHABLE if isinstance(error, PoolTimeout) else reason
    return {"message": message}, 503, RETRY_AFTER
