"""Foreign writers in the log: another fleet with the same STREAM_NAME, or a leader of our past."""

import random
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from decimal import Decimal
from itertools import islice
from typing import Any

import redis

from lab.chaos.faults.scene import Moot, Scene, moot_if_away
from lab.chaos.fleet import STREAM
from rocket_rides.database import one_row
from rocket_rides.log import Record

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


def write(scene: Scene, dice: random.Random) -> str:
    """Bursts of well-formed entries for some seconds, none of them about a ride of ours.

    Most come from another fleet, with a term of its own and ids close to ours. Some come from a
    fleet without terms, and some from a zombie leader of ours, whose term has ended.
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
        yield Record(ride, last, distance, term.encode())
        last = ride


def _append(log: redis.Redis, records: list[Record]) -> None:
    with log.pipeline() as batch:  # in one transaction, as a streamer does
        for record in records:
            data = f'{{"id": {record.id}, "distance": {record.distance}}}'
            fields: dict[Any, Any] = {"data": data, "prev": record.prev}
            batch.xadd(STREAM, fields | ({"term": record.term} if record.term else {}))
        batch.execute()
