"""Logs what the API can't do at the moment, and why: once, not with every request."""

import logging
import time
from threading import Lock

import psycopg
from flask import Response, request

from api import pool
from unified_log import unreachable
from unified_log.database import UNREACHABLE
from unified_log.errors import Unavailable, in_one_line
from unified_log.waiting import STARTING_UP, LimitedWarning

logger = logging.getLogger("api")

PROBE = "routes.readyz"
PAUSE = 1.0  # seconds, at least, between two warnings about a route that fails and works by turns


class Outages:
    """For each route, the last logged reason for its 503s, until it works again."""

    def __init__(self, why: "WhyUnreachable") -> None:
        self._why = why
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
        why = self._why.latest if pool.UNREACHABLE in reason else ""
        logger.warning("%s answers 503: %s%s", route, reason, why and f" ({why})")

    def _end(self, route: str) -> None:
        with self._lock:
            if self._said.pop(route, None) is None:
                return
        logger.info("%s works again", route)


class WhyUnreachable(logging.Filter):
    """Logs now and then why the pool can't connect, instead of at each of its attempts."""

    def __init__(self, url: str, patience: float = STARTING_UP) -> None:
        super().__init__()
        self._url = url
        self._warn = LimitedWarning(patience)
        self.latest = ""  # reason

    def filter(self, record: logging.LogRecord) -> bool:
        for error in record.args or ():
            if isinstance(error, psycopg.Error):
                self.latest = unreachable.why(error, self._url)
                self._warn(f"{UNREACHABLE}: {self.latest}")
            elif isinstance(error, Unavailable):  # it is another cell's, or behind a pooler
                self.latest = in_one_line(error)
                self._warn(self.latest)
        return False


def tell_why_unreachable(url: str) -> WhyUnreachable:
    """Have the pool's log say why Postgres, at `url`, can't be reached: answers don't."""
    log = logging.getLogger("psycopg.pool")
    log.setLevel(logging.WARNING)
    why = WhyUnreachable(url)
    log.addFilter(why)
    return why


def _route() -> str:
    return f"{request.method} {request.url_rule}"
