"""The log as a feed over HTTP, much as http-feeds.org has it, for readers outside of this project.

A page has the records with `after < id <= last_sent`, of all kinds or of some, in order: nothing
can come between them any more. So a full page never changes, and caches may keep it.

But for one thing: a database that was restored gives its positions out again. So the link to the
next page carries the newest term, too (`unified_log.terms`). By it we tell a reader of another
history, and one who was passed by a repair; and whoever begins again is led to pages that no cache
has. A cache may still have a page of a history that was lost. Who takes it is as if they had read
before the restore: the last page is in no cache, so they are told there.
"""

import re
from typing import NamedTuple
from urllib.parse import quote, urlencode

from flask import Response, request
from sqlalchemy import Connection, text
from werkzeug.exceptions import ServiceUnavailable, UnprocessableEntity

from api.database import committed, driver
from api.parameters import in_query
from unified_log.log import LARGEST_ID

MOST = 1000  # records
MEDIA_TYPE = "application/cloudevents-batch+json"
# Neither public nor private: a shared cache keeps it, unless the request was authorized (RFC 9111,
# 3.5).
FOR_EVER = "max-age=31536000, immutable"

# One statement, so one snapshot. `upto` is the last position of its history that a reader of this
# term may stand at: the end of the term, or where it was replaced, or -1 where it is not known.
# CloudEvents knows no time beyond the years 1 to 9999; null means that there is none.
PAGE = text("""
    SELECT last_sent, upto, unknown, records, last, events::text,
           (SELECT term FROM terms ORDER BY after DESC LIMIT 1) AS term
    FROM (
        SELECT last_sent_id AS last_sent,
               CAST(:database AS text) || cell_start() / 100000000000000 AS source
        FROM streamer_state ORDER BY version DESC LIMIT 1
    ) state
    CROSS JOIN LATERAL (
        SELECT CASE WHEN CAST(:term AS text) IS NULL THEN last_sent ELSE coalesce(
            (SELECT least(last_sent, (SELECT min(after) FROM terms WHERE after > mine.after))
             FROM terms mine WHERE term = CAST(:term AS text)),
            (SELECT max(after) FROM terms WHERE CAST(:term AS text) = ANY(replaced)),
            -1
        ) END AS upto
    ) history
    CROSS JOIN LATERAL (
        SELECT min(asked) AS unknown FROM unnest(CAST(:types AS text[])) asked
        WHERE NOT EXISTS (SELECT FROM log_kinds WHERE type = asked)
    ) kinds
    CROSS JOIN LATERAL (
        SELECT count(*) AS records, max(id) AS last, json_agg(json_build_object(
            'specversion', '1.0',
            'id', id::text,
            'source', source,
            'type', type,
            'time', CASE WHEN created_at >= '0001-01-01 00:00+00'
                          AND created_at < '10000-01-01 00:00+00' THEN created_at END,
            'data', data
        ) ORDER BY id) AS events
        FROM (
            SELECT * FROM log_records
            WHERE id > CAST(:after AS bigint) AND id <= last_sent
              AND (CAST(:types AS text[]) IS NULL OR type = ANY(CAST(:types AS text[])))
            ORDER BY id LIMIT :limit
        ) settled
    ) page
""")

# Or else a policy could hide records, and a reader would pass them.
ALL_OR_NONE = text("SET LOCAL row_security = off")

TERM = re.compile(r"[0-9a-f]{16}")
TYPE = re.compile(r"[a-z0-9_.]{1,57}")


class OtherHistory(Exception):
    """What the client has read up to a position is not, or no longer, what this database has."""

    def __init__(self, position: int) -> None:
        super().__init__(
            f"what you have read up to position {position} is not what this database has: it was"
            " restored to an earlier time, or a repair put records below it; begin anew"
        )


class Asked(NamedTuple):
    """What a client asks for; None where it leaves a parameter out."""

    after: int | None
    term: str | None
    limit: int | None
    types: list[str] | None

    def next(self, after: int, term: str | None) -> str:
        """The link to the next page, relative to this one: a page has one URL, for caches."""
        given = {"after": after, "term": term, "limit": self.limit, "type": self.types}
        query = urlencode({name: it for name, it in given.items() if it is not None}, doseq=True)
        return f'<?{query}>; rel="next"'


def asked_for() -> Asked:
    """What the query asks for. Raises UnprocessableEntity, with a message for the client."""
    term, types = in_query("term"), sorted({*request.args.getlist("type")})
    if term is not None and not TERM.fullmatch(term):
        raise UnprocessableEntity("term must be the one of the link to the next page")
    for given in types:
        if not TYPE.fullmatch(given):
            raise _no_type(given)
    return Asked(_number("after", 0, LARGEST_ID), term, _number("limit", 1, MOST), types or None)


def _number(name: str, least: int, most: int) -> int | None:
    given = in_query(name)
    if given is None:
        return None
    # No digits but ASCII's, and few enough to be counted.
    if not (re.fullmatch("[0-9]{1,19}", given) and least <= int(given) <= most):
        raise UnprocessableEntity(f"{name} must be a whole number from {least} to {most}")
    return int(given)


def _no_type(name: str) -> UnprocessableEntity:
    return UnprocessableEntity(f"type must be one of the log's, which {name!r} is not")


def page(connection: Connection, asked: Asked) -> Response:
    """A page, and the link to the next. Raises OtherHistory, HTTPException or DBAPIError."""
    after, limit = asked.after or 0, asked.limit or MOST
    database = f"/{quote(driver(connection).info.dbname, safe='')}/cells/"
    values = {**asked._asdict(), "after": after, "limit": limit, "database": database}
    with committed(connection):  # a roll-back would have psycopg prepare all statements anew
        connection.execute(ALL_OR_NONE)
        found = connection.execute(PAGE, values).one_or_none()
    if found is None:
        raise ServiceUnavailable("streamer_state is empty; the streamer says how to restore it")
    if found.unknown is not None:
        raise _no_type(found.unknown)
    if after > found.upto:
        raise OtherHistory(after)
    is_full = found.records == limit
    answer = Response(found.events or "[]", mimetype=MEDIA_TYPE)
    answer.headers["Link"] = asked.next(found.last if is_full else found.last_sent, found.term)
    answer.headers["Cache-Control"] = FOR_EVER if is_full and asked.term else "no-store"
    return answer
