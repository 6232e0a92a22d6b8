"""The Flask application: every answer is JSON, errors included."""

from typing import Any

import msgspec
from flask import Flask
from flask.json.provider import JSONProvider
from werkzeug.routing import IntegerConverter

from api.groups import Groups
from api.outages import Outages
from api.pool import open_pool
from api.problems import answer_errors
from api.pruning import Pruner
from api.slow_clients import SlowClients, announce_close
from api.views import routes
from rocket_rides import settings
from rocket_rides.parent_death import die_with_parent
from rocket_rides.process import Stop, begin


class ExactJson(JSONProvider):
    """JSON in which a decimal is a number with all of its digits."""

    _encoder = msgspec.json.Encoder(decimal_format="number")

    def dumps(self, obj: Any, **_: Any) -> str:
        return self._encoder.encode(obj).decode() + "\n"

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return msgspec.json.decode(s)


class AsciiInteger(IntegerConverter):
    """A number in a path, of ASCII digits only."""

    regex = "[0-9]+"


def create_app() -> Flask:
    """One worker's application, with its own pool of connections."""
    config = settings.load()
    begin(config.log_level)
    die_with_parent()
    app = Flask(__name__, static_folder=None)
    app.config.update(PROVIDE_AUTOMATIC_OPTIONS=False)
    app.json = ExactJson(app)
    app.url_map.merge_slashes = False  # a redirect would answer in HTML
    app.url_map.converters["int"] = AsciiInteger
    app.register_blueprint(routes)
    answer_errors(app)
    app.after_request(Outages().note)
    app.after_request(announce_close)
    app.extensions["pool"] = open_pool(config)
    app.extensions["groups"] = Groups(config.log_url, config.stream_name)
    Pruner(config, Stop()).begin()
    SlowClients(config.api_port, config.api_client_timeout).watch(app)
    return app
