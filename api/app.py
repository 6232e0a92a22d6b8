"""The Flask application: every answer is JSON, errors included."""

from flask import Flask, Request
from werkzeug.routing import IntegerConverter, MapAdapter

from api.bodies import end_unread
from api.database import Database
from api.exact_json import ExactJson
from api.headers import forget_variables, refuse_ambiguous
from api.outages import Outages
from api.problems import answer_errors
from api.pruning import Pruner
from api.slow_clients import SlowClients
from api.traces import name_traces
from api.views import routes
from rocket_rides import service, settings, telemetry
from rocket_rides.parent_death import die_with_parent
from unified_log.process import Stop


class AsciiInteger(IntegerConverter):
    """A number in a path, of ASCII digits only."""

    regex = "[0-9]+"


class Api(Flask):
    """Flask, but for hosts: whichever was asked for, it is this API."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Match by path and method alone; also a request that offers to go on by a WebSocket."""
        if request is None:
            return None
        return MapAdapter(self.url_map, "", "/", None, "http", request.path, request.method)


def create_app() -> Flask:
    """One worker's application, with its own pool of connections."""
    config = settings.load()
    service.configure(config)
    name_traces()
    die_with_parent()
    forget_variables()
    app = Api(__name__, static_folder=None)
    app.json = ExactJson(app)
    app.config.update(PROVIDE_AUTOMATIC_OPTIONS=False)
    app.url_map.merge_slashes = False  # a redirect would answer in HTML
    app.url_map.converters["int"] = AsciiInteger
    app.register_blueprint(routes)
    answer_errors(app)
    database = app.extensions["database"] = Database(config)
    app.after_request(Outages(database).note)
    app.after_request(end_unread)
    telemetry.configure(config, "api")
    telemetry.instrument_api(app, database.engine)
    app.before_request(refuse_ambiguous)
    Pruner(config, Stop()).start()
    SlowClients(config.api_port, config.api_client_timeout).watch(app)
    return app
