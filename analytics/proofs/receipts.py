"""The receipts: every ride up to their `complete_to` has one outcome, and each receipt a ride.

There is never more than one, since the ride is the key of the table. Whether there is one, a join
in Postgres tells. Each stretch of rides is read in one statement, so in one snapshot, together with
`complete_to`: nothing above that is called missing. So a repair may set
`complete_to` back meanwhile; and workers may go on, since an outcome never goes away.

A night looks at the rides since the last one; at the stretches that the last one could not prove,
because something was wrong or `complete_to` had been set back, also where rides were held, so that
it proved nothing; and at a random sample of the others. Where any of these are wrong, and when the
warehouse is built anew, as after a repair, it looks at all rides: what is found is then the same
the next night, whatever that samples, and an approval of it is used. And each night looks for
receipts without a ride below this cell's ids, and above all that it has looked at.

What is missing is delivered: the sweep puts a ride without a row into the inbox again, and a row
without an outcome is in the queue. Nothing repairs a receipt of a ride that does not exist:
docs/reconcile.md says what a person does.
"""

import random
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from analytics.proofs import newest
from analytics.result import NONE_WRONG, Proved, ReceiptsVerdict, Stretch, WrongRides
from analytics.rows import NAMED
from unified_log.database import one_row

PIECE = 100_000  # rides
SAMPLE, SAMPLED = 8, 10_000  # stretches of so many ids

ENDS = """
    SELECT coalesce(max(complete_to), 0), cell_start() FROM receipts_state
"""
# The last ride of a piece of so many.
END_OF_PIECE = "SELECT id FROM rides WHERE id > %s AND id <= %s ORDER BY id OFFSET %s LIMIT 1"
LOOK = """
    SELECT (SELECT coalesce(max(complete_to), 0) FROM receipts_state),
           count(*) FILTER (WHERE is_due), count(*) FILTER (WHERE is_due AND outcome IS NULL),
           array_agg(id) FILTER (WHERE is_due AND outcome IS NULL),
           count(*) FILTER (WHERE id IS NULL),
           array_agg(ride_id) FILTER (WHERE id IS NULL)
    FROM (
        SELECT id, id <= (SELECT complete_to FROM receipts_state) AS is_due
        FROM rides WHERE id > %(after)s AND id <= %(upto)s
    ) known FULL JOIN (
        SELECT ride_id, outcome FROM receipts WHERE ride_id > %(after)s AND ride_id <= %(upto)s
    ) receipt ON ride_id = id
"""
STRANGE = """
    SELECT count(*), array_agg(ride_id) FROM receipts LEFT JOIN rides ON id = ride_id
    WHERE (ride_id <= cell_start() OR ride_id > %s) AND id IS NULL
"""


def proved(connection: psycopg.Connection, found: Iterable[Mapping[str, Any]] = ()) -> Proved:
    """What the newest run has proved that could say so, but for what the last one has `found`."""
    run = newest(connection, "receipts")
    upto, again = run.get("proved_upto", 0), [*run.get("look_again", ())]
    again += (ends for each in found for ends in each.get("stretches", ()))
    known = sorted(Stretch(after, min(end, upto)) for after, end in again if after < upto)
    return Proved(upto, tuple(joined(known)))


def prove(
    connection: psycopg.Connection, known: Proved, frozen: int, chance: random.Random
) -> ReceiptsVerdict:
    """Look at what is not yet `known` to be right, and at a sample of what is; if need be at all.

    Of rides past the `frozen` one nothing is proved: a watermark that somebody has set past all
    that was sent would hide those that come later.
    """
    complete_to, start = one_row(connection.execute(ENDS))
    complete_to, known = min(complete_to, frozen), known._replace(upto=min(known.upto, frozen))
    again = [*known.look_again]
    again += apart(sample(start, min(known.upto, complete_to), chance), again)
    least, rides, missing, strange = complete_to, 0, NONE_WRONG, NONE_WRONG
    unproved = []
    for stretch in [*again, *pieces(connection, max(known.upto, start), complete_to)]:
        now, due, *wrong = one_row(connection.execute(LOOK, stretch._asdict()))
        if (wrong[0] or wrong[2]) and known.upto > start:
            return prove(connection, Proved(), frozen, chance)
        least, rides = min(least, now), rides + due
        missing, strange = _with(missing, *wrong[:2]), _with(strange, *wrong[2:])
        if wrong[0] or wrong[2] or now < stretch.upto:
            unproved.append(stretch)
    upto = max(known.upto, complete_to)
    strange = _with(strange, *one_row(connection.execute(STRANGE, [upto])))
    return ReceiptsVerdict(least, rides, missing, strange, Proved(upto, tuple(unproved)))


def pieces(connection: psycopg.Connection, after: int, upto: int) -> Iterable[Stretch]:
    """All rides with `after < id <= upto`, PIECE at a time, however far apart their ids are."""
    while after < upto:
        row = connection.execute(END_OF_PIECE, [after, upto, PIECE - 1]).fetchone()
        end = row[0] if row else upto
        yield Stretch(after, end)
        after = end


def sample(start: int, upto: int, chance: random.Random) -> list[Stretch]:
    """Up to SAMPLE random stretches from the cell's start to `upto`, in order.

    Not from the first ride: it may be gone.
    """
    numbers = range(start // SAMPLED, upto // SAMPLED)
    chosen = sorted(chance.sample(numbers, min(SAMPLE, len(numbers))))
    return [Stretch(number * SAMPLED, (number + 1) * SAMPLED) for number in chosen]


def apart(stretches: Iterable[Stretch], others: Iterable[Stretch]) -> list[Stretch]:
    """Those stretches that overlap none of the others, so that no ride is counted twice."""
    return [
        one
        for one in stretches
        if not any(one.after < other.upto and other.after < one.upto for other in others)
    ]


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same rides, each once; the stretches are in order."""
    found = list[Stretch]()
    for each in stretches:
        if found and each.after < found[-1].upto:
            found[-1] = found[-1]._replace(upto=max(found[-1].upto, each.upto))
        else:
            found.append(each)
    return found


def _with(wrong: WrongRides, rides: int, ids: list[int] | None) -> WrongRides:
    return WrongRides(wrong.rides + rides, tuple(sorted([*wrong.ids, *(ids or [])])[:NAMED]))
