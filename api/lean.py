"""Flask without what this API has no use for: sessions, virtual hosts, async views, streams.

Nor does it look for functions around a request where none are registered. Each is left out where
Flask provides for it, in a class or a method made to be replaced; the rest of Flask is untouched.
What that saves is in docs/performance.md.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from flask import Flask, Request, Response
from flask.globals import request_ctx
from flask.json.provider import JSONProvider
from flask.sessions import NullSession, SessionInterface
from flask.signals import appcontext_tearing_down, request_tearing_down
from flask.typing import ResponseReturnValue
from werkzeug.datastructures import Headers
from werkzeug.routing import MapAdapter

JSON = "application/json"


class WholeResponse(Response):
    """A response whose body is at hand: the server gets it as a list, and sends it in one piece.

    Not for `call_on_close`, nor for a status that has no body.
    """

    default_mimetype = JSON

    def get_app_iter(self, environ: dict[str, Any]) -> Iterable[bytes]:
        """The body; none for HEAD."""
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [self.get_data()]

    def get_wsgi_headers(self, environ: dict[str, Any]) -> Headers:
        """The headers as they are: their length is known, and their URLs are ASCII."""
        return self.headers


class ExactJson(JSONProvider):
    """JSON in which a decimal is a number with all of its digits."""

    _encoder = msgspec.json.Encoder(decimal_format="number")

    def dumps(self, obj: Any, **_: Any) -> str:
        return self._encoder.encode(obj).decode() + "\n"

    def loads(self, s: str | bytes, **_: Any) -> Any:
        return msgspec.json.decode(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self._prepare_response_obj(args, kwargs))

    def answer(
        self, obj: Any, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """A response with `obj` as its body."""
        body = self._encoder.encode(obj) + b"\n"
        return WholeResponse(body, status, headers)


class NoSessions(SessionInterface):
    """No request has a session, so none is looked for in its cookies."""

    _none = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        return self._none


class UnlimitedRequest(Request):
    """A request that leaves it to the view how long its body may be, whatever the settings say."""

    max_content_length = None


class LeanFlask(Flask):
    """A Flask whose views are functions that answer JSON, at the same paths for every host."""

    request_class = UnlimitedRequest
    response_class = WholeResponse
    json: ExactJson
    json_provider_class = ExactJson
    session_interface = NoSessions()

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Match by path and method alone: whatever host was asked for, it is this API."""
        if request is None:
            return None
        return MapAdapter(self.url_map, "", "/", None, "http", request.path, request.method)

    def preprocess_request(self) -> ResponseReturnValue | None:
        """Call what is registered to be called before a view."""
        if self.before_request_funcs or self.url_value_preprocessors:
            return super().preprocess_request()
        return None

    def make_response(self, rv: Any) -> Response:
        """Make it at once from an object, a status and headers, as views return them."""
        if isinstance(rv, tuple) and len(rv) == 3 and isinstance(rv[0], dict):
            return self.json.answer(*rv)
        return super().make_response(rv)

    def process_response(self, response: Response) -> Response:
        """Call what is registered to be called with the response."""
        if request_ctx._after_request_functions or self.after_request_funcs.keys() != {None}:
            return super().process_response(response)
        for function in reversed(self.after_request_funcs[None]):
            response = function(response)
        return response

    def do_teardown_request(self, exc: BaseException | None = None) -> None:
        """Call what is registered to be called after a request."""
        if self.teardown_request_funcs or request_tearing_down.receivers:
            super().do_teardown_request(exc)

    def do_teardown_appcontext(self, exc: BaseException | None = None) -> None:
        """The same for the context of the application."""
        if self.teardown_appcontext_funcs or appcontext_tearing_down.receivers:
            super().do_teardown_appcontext(exc)

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Any function as it is: none here is async."""
        return func
