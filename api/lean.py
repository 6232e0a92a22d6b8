"""Flask without what this API has no use for: sessions, virtual hosts, async views, streams.

Each is left out where Flask provides for it, in a class or a method made to be replaced; the rest
of Flask is untouched. What each saves is in docs/performance.md.
"""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from flask import Flask, Request, Response
from flask.json.provider import JSONProvider
from flask.sessions import NullSession, SessionInterface
from werkzeug.datastructures import Headers
from werkzeug.routing import MapAdapter

JSON = "application/json"


class WholeResponse(Response):
    """A response whose body is at hand: the server gets it as a list, and sends it in one piece."""

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
        body = self._encoder.encode(self._prepare_response_obj(args, kwargs)) + b"\n"
        return WholeResponse(body, content_type=JSON)


class NoSessions(SessionInterface):
    """No request has a session, so none is looked for in its cookies."""

    _none = NullSession()

    def open_session(self, app: Flask, request: Request) -> NullSession:
        return self._none


class LeanFlask(Flask):
    """A Flask whose views are functions that answer JSON, at the same paths for every host."""

    response_class = WholeResponse
    json_provider_class = ExactJson
    session_interface = NoSessions()

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Match by path and method alone."""
        if request is None:
            return None
        return self.url_map.bind("", path_info=request.path, default_method=request.method)

    def ensure_sync(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Any function as it is: none here is async."""
        return func
