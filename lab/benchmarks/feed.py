"""Records a second through the feed, beside a plain SELECT of the same rows, page by page.

One reader asks for full pages over one connection, follows the links, and parses each.
"""

import http.client
import json
import time
from decimal import Decimal
from functools import partial
from urllib.parse import urljoin

import psycopg

from lab.benchmarks import outbox
from lab.benchmarks.figures import Figure
from lab.benchmarks.stand import HOST, Stand

RECORDS = 200_000
PAGE = 1000
ROUNDS = 5
SELECT = """
    SELECT id, created_at, type, data::text FROM log_records WHERE id > %s ORDER BY id LIMIT %s
"""


def measure(stand: Stand) -> list[Figure]:
    figure = Figure(
        f"{RECORDS:,} records by the feed, a reader", "records/s", f"`SELECT ... LIMIT {PAGE}`"
    )
    with stand.connect() as connection, stand.api() as (port, _):
        outbox.insert_as_sent(connection, RECORDS)
        figure.measure(ROUNDS, partial(through_the_feed, port), partial(selected, connection))
    return [figure]


def through_the_feed(port: int) -> float:
    """Records a second."""
    client, page, read = http.client.HTTPConnection(HOST, port), "/log", 0
    began = time.perf_counter()
    while True:
        client.request("GET", page)
        with client.getresponse() as answer:
            events = json.load(answer, parse_float=Decimal)
            page = urljoin(page, answer.headers["Link"].partition(">")[0][1:])
        read += len(events)
        if not events:
            break
    return rate(read, began)


def selected(connection: psycopg.Connection) -> float:
    """Records a second: each page parsed, too."""
    after = read = 0
    began = time.perf_counter()
    while rows := connection.execute(SELECT, [after, PAGE]).fetchall():
        for *_, data in rows:
            json.loads(data, parse_float=Decimal)
        after = rows[-1][0]
        read += len(rows)
    return rate(read, began)


def rate(read: int, began: float) -> float:
    if read != RECORDS:
        raise RuntimeError(f"{read:,} records were read")
    return read / (time.perf_counter() - began)
