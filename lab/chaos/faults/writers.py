"""Other writers: of rides, beside the API, some late, some never; and of entries in the log."""

import random
import re
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from decimal import Decimal
from itertools import islice
from typing import Any

import psycopg
import redis
from msgspec.structs import astuple

from api.booking import TAKE
from lab.chaos.evidence import Answer, Ask
from lab.chaos.faults.scene import Moot, Scene, moot_if_away
from lab.chaos.fleet import STREAM
from unified_log.database import one_row
from unified_log.log import Record

# Like TAKE, for a ride whose minute may have been computed already.
IMPORT = re.sub(
    r":(\w+)",
    r"%(\1)s",
    TAKE.text.replace(
        "(distance) VALUES (:distance)",
        "(distance, created_at) VALUES (:distance, now() - make_interval(secs => :ago))",
    ),
).encode()
# A record that no consumer handles (`lab.chaos.drifts`).
NOTE = """
    WITH note AS (INSERT INTO notes DEFAULT VALUES RETURNING id)
    SELECT stage(id, 'note.create', jsonb_build_object('id', id)) FROM note
"""
LONGEST_AGO = 150.0  # seconds
FIELDS = ("id", "type", "data", "prev", "term")
BURSTS = (1, 5, 40)  # entries at a time

# The last number sent; the `after` of the first term, up to which entries without a term count; and
# the terms that have ended, each with its end.
OURS = """
    SELECT last_sent_id, (SELECT min(after) FROM terms), (
        SELECT coalesce(json_agg(json_build_array(term, upto)), '[]')
        FROM (SELECT term, lead(after) OVER (ORDER BY after) AS upto FROM terms) ended
        WHERE upto IS NOT NULL
    ) FROM streamer_state
"""


def hold(scene: Scene, dice: random.Random) -> str:
    """A transaction draws numbers, stays open while higher ones commit, and then commits."""
    rides, seconds = dice.randint(1, 3), dice.uniform(0.5, 4)
    ago = dice.choice((0, dice.uniform(0, LONGEST_AGO)))
    asks = [scene.journal.ask() for _ in range(rides)]
    answers: list[Answer] = []
    with moot_if_away(), closing(_connect(scene)) as connection:
        for ask in asks:
            answers.append(_take(connection, ask, ago))
            connection.execute(NOTE)
            scene.wait(seconds / rides)
        for ask in asks:
            ask.whole = True  # it may be committed even without an answer
        sent = time.monotonic()
        try:
            connection.commit()
        except psycopg.Error:
            for ask in asks:
                ask.whole = connection.broken  # otherwise it was refused and rolled back
            raise
        came = time.monotonic()
    for ask, answer in zip(asks, answers, strict=True):
        ask.answers.append(answer._replace(sent=sent, came=came))
    return f"{rides} rides"


def roll_back(scene: Scene, dice: random.Random) -> str:
    """Transactions draw numbers, then roll back, or end with their session."""
    transactions = dice.randint(2, 6)
    with moot_if_away():
        for _ in range(transactions):
            with closing(_connect(scene)) as connection:
                _take(connection, scene.journal.ask())
                scene.wait(dice.uniform(0, 0.6))
                if dice.random() < 0.5:
                    connection.rollback()
    return f"{transactions} transactions"


def _connect(scene: Scene) -> psycopg.Connection:
    connection = scene.fleet.connect()
    connection.autocommit = False
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return connection


def _take(connection: psycopg.Connection, ask: Ask, ago: float = 0) -> Answer:
    values = {"distance": ask.distance, "ago": ago, "traceparent": None, "tracestate": None}
    return Answer(*one_row(connection.execute(IMPORT, values)))


def write_strange_entries(scene: Scene, dice: random.Random) -> str:
    """Bursts of well-formed entries for some seconds, none of them about a ride of ours.

    Most come from another fleet with the same STREAM_NAME, a term of its own, and ids close to
    ours. Some come from a fleet without terms, and some from a zombie leader of ours, whose term
    has ended.
    """
    last_sent, first_after, _ = _ours(scene)
    start = max(first_after, last_sent - dice.randint(0, 200))
    another = _history(dice, start, f"{dice.getrandbits(64):016x}")
    without_terms = _history(dice, start, "")
    written, end = 0, time.monotonic() + dice.uniform(2, 6)
    with scene.fleet.redis_client() as log:
        while time.monotonic() < end and not scene.over.is_set():
            [who] = dice.choices((another, without_terms, None), (6, 2, 2))
            number = dice.choice(BURSTS)
            with suppress(Moot, redis.RedisError):
                records = [*islice(who or _zombie(scene, dice), number)]
                _append(log, records)
                written += len(records)
            scene.wait(dice.uniform(0, 0.3))
    return f"the log ({written} entries)"


def _ours(scene: Scene) -> tuple[int, int, list[tuple[str, int]]]:
    """The row of OURS. Raises Moot while there is no leader yet, or no answer."""
    with moot_if_away(), closing(scene.fleet.connect()) as connection:
        last_sent, first_after, ended = one_row(connection.execute(OURS))
    if first_after is None:
        raise Moot
    return last_sent, first_after, ended


def _zombie(scene: Scene, dice: random.Random) -> Iterator[Record]:
    """Entries of a term of ours that has ended, asked now: a restore may have undone an end."""
    _, first_after, ended = _ours(scene)
    term, upto = dice.choice(ended or [("", first_after)])
    return _history(dice, upto, term)


def _history(dice: random.Random, last: int, term: str) -> Iterator[Record]:
    """Entries with rising ids, each with its `prev`, and with distances that no client asks for."""
    while True:
        ride = last + dice.choice((1, 1, 1, 2, 5))
        distance = Decimal(1009 * dice.randint(1, 20_000) + dice.randint(1, 1008)).scaleb(-3)
        data = f'{{"id": {ride}, "distance": {distance}}}'.encode()
        yield Record(ride, b"ride.create", data, last, term.encode())
        last = ride


def _append(log: redis.Redis, records: list[Record]) -> None:
    with log.pipeline() as batch:  # in one transaction, as a streamer does
        for record in records:
            fields: dict[Any, Any] = dict(zip(FIELDS, astuple(record), strict=False))
            if not record.term:
                del fields["term"]
            batch.xadd(STREAM, fields)
        batch.execute()
