"""Logs what the API can't do at the moment, and why: once, not with every request."""

import logging
import time
from threading import Lock

from flask import Response, request

from api.database import UNREACHABLE, Database

logger = logging.getLogger("api")

PROBE = "routes.readyz"
PAUSE = 1.0  # seconds, at least, between two warnings about a route that fails and works by turns


class Outages:
    """For each route, the last logged reason for its 503s, until it works again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._said: dict[str, str] = {}
        self._quiet_until: dict[str, float] = {}

    def note(self, response: Response) -> Response:
        """Look at an answer before it goes out: for Flask's `after_request`."""
        status = response.status_code
        if status == 503:
            if request.endpoint != PROBE:  # whose purpose is to say when it isn't ready
                self._warn_once(_route(), response.get_json()["detail"])
        elif self._said and status < 300:  # a refusal may not have reached the database
            self._end(_route())
        return response

    def _warn_once(self, route: str, reason: str) -> None:
        with self._lock:
            now = time.monotonic()
            if reason == self._said.get(route) or now < self._quiet_until.get(route, 0):
                return
            self._said[route], self._quiet_until[route] = reason, now + PAUSE
        why = self._database.why_unreachable if UNREACHABLE in reason else ""
        logger.warning("%s answers 503: %s%s", route, reason, why and f" ({why})")

    def _end(self, route: str) -> None:
        with self._lock:
            if self._said.pop(route, None) is None:
                return
        logger.info("%s works again", route)


def _route() -> str:
    return f"{request.method} {request.url_rule}"
