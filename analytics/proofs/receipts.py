"""The receipts: every ride up to their `complete_to` has exactly one outcome, and no other has one.

There is never more than one: the ride is the key of the table. That there is one is a join of two
indexes, in Postgres. Each stretch of rides is one statement, so one snapshot, which also bounds it
by the `complete_to` of that moment: an outcome never goes away, so the workers may go on meanwhile,
and where a mend has set `complete_to` back, nothing above it is called missing.

A night looks at the rides since the last one, and at a random sample of the older ones; `full` at
all. It begins anew below what it finds wrong, until that is right. The sweep delivers what is
missing. Nothing repairs an outcome of a ride that does not exist: docs/reconciliation.md says what
a person does.
"""

import random
from collections.abc import Iterable
from typing import NamedTuple

import psycopg

from analytics.proofs import NAMED
from analytics.result import ReceiptsVerdict, Some
from rocket_rides.database import one_row

PIECE = 100_000  # ids
SAMPLE, SAMPLED = 8, 10_000  # stretches of so many ids
LOWEST = -(2**63)

COMPLETE_TO = "SELECT coalesce(max(complete_to), 0) FROM receipts_state"
LOOK = """
    SELECT count(*) FILTER (WHERE is_due), count(*) FILTER (WHERE is_due AND outcome IS NULL),
           array_agg(id ORDER BY id) FILTER (WHERE is_due AND outcome IS NULL),
           count(*) FILTER (WHERE id IS NULL),
           array_agg(ride_id ORDER BY ride_id) FILTER (WHERE id IS NULL)
    FROM (
        SELECT id, id > since AND id <= complete_to AS is_due FROM receipts_state CROSS JOIN rides
        WHERE id > %(after)s AND id <= %(upto)s
    ) ride FULL JOIN (
        SELECT ride_id, outcome FROM receipts WHERE ride_id > %(after)s AND ride_id <= %(upto)s
    ) receipt ON ride_id = id
"""
STRANGE = """
    SELECT count(*), array_agg(ride_id ORDER BY ride_id)
    FROM receipts LEFT JOIN rides ON id = ride_id WHERE ride_id > %s AND id IS NULL
"""


class Stretch(NamedTuple):
    """Rides with `after < id <= upto`."""

    after: int
    upto: int


def prove(
    connection: psycopg.Connection, proved_upto: int, chance: random.Random
) -> ReceiptsVerdict:
    """Look at the rides after `proved_upto`, at all outcomes there, and at a sample below."""
    complete_to = one_row(connection.execute(COMPLETE_TO))[0]
    after = min(proved_upto, complete_to)
    rides, missing, strange = 0, Some(), Some()
    for stretch in [*sample(after, chance), *pieces(after, complete_to)]:
        row = one_row(connection.execute(LOOK, stretch._asdict()))
        rides += row[0]
        missing, strange = _with(missing, *row[1:3]), _with(strange, *row[3:])
    above = one_row(connection.execute(STRANGE, [complete_to]))
    return ReceiptsVerdict(complete_to, rides, missing, _with(strange, *above))


def pieces(after: int, upto: int) -> Iterable[Stretch]:
    """From `after` on; the first also has what lies below every ride, if it begins with those."""
    for start in range(after, upto, PIECE):
        yield Stretch(start or LOWEST, min(start + PIECE, upto))


def sample(upto: int, chance: random.Random) -> list[Stretch]:
    """Up to SAMPLE whole stretches of the rides up to there, in order."""
    numbers = range(upto // SAMPLED)
    chosen = sorted(chance.sample(numbers, min(SAMPLE, len(numbers))))
    return [Stretch(number * SAMPLED, (number + 1) * SAMPLED) for number in chosen]


def _with(some: Some, rides: int, ids: list[int] | None) -> Some:
    return Some(some.rides + rides, (*some.ids, *(ids or []))[:NAMED])
