"""Records a second through the feed, beside a plain SELECT of the same rows, page by page.

One reader asks for full pages over one connection, follows the links, and parses each.
"""

import http.client
import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from urllib.parse import urljoin

import psycopg

from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure
from lab.benchmarks.stand import HOST, Stand, seconds

RECORDS = 200_000
PAGE = 1000
ROUNDS = 5
SELECT = """
    SELECT id, created_at, type, data::text FROM log_records WHERE id > %s ORDER BY id LIMIT %s
"""


def measure(stand: Stand) -> list[Figure]:
    name, limit = f"{RECORDS:,} records by the feed, a reader", f"`SELECT ... LIMIT {PAGE}`"
    figure = Figure(name, "records/s", limit)
    with stand.connect() as connection, stand.api() as (port, _):
        outbox.insert_as_sent(connection, RECORDS)
        feed, select = partial(through_the_feed, port), partial(selected, connection)
        figure.measure(ROUNDS, partial(rate, feed), partial(rate, select))
    return [figure]


def through_the_feed(port: int) -> int:
    client, page, read = http.client.HTTPConnection(HOST, port), "/log", 0
    while True:
        client.request("GET", page)
        with client.getresponse() as answer:
            events = json.load(answer, parse_float=Decimal)
            page = urljoin(page, answer.headers["Link"].partition(">")[0][1:])
        read += len(events)
        if not events:
            return read


def selected(connection: psycopg.Connection) -> int:
    """Each page is parsed, too."""
    after = read = 0
    while rows := connection.execute(SELECT, [after, PAGE]).fetchall():
        for *_, data in rows:
            json.loads(data, parse_float=Decimal)
        after = rows[-1][0]
        read += len(rows)
    return read


def rate(reader: Callable[[], int]) -> float:
    """Records a second."""
    read: list[int] = []
    took = seconds(lambda: read.append(reader()))
    if read != [RECORDS]:
        raise RuntimeError(f"{read} records were read")
    return RECORDS / took
