"""Resets: how a reconciliation corrects a consumer, exactly, wherever the consumer stands.

The reconciliation says that all rides up to position F add up to T metres. Everything up to the
streamer's last_sent, call it S, is settled. F was S or less when the run froze it; it is past S
only if this database was restored to an earlier time since (see below). For a consumer at position
C the right state is

* C <= F, at F or behind it: T, at F. Log entries up to F are then skipped as re-sends.
* F < C <= S, past F: T plus the rides between F and C, at C.
* S < C, past everything that can be counted: T plus the rides between F and S, at S.

In short: stand at the lesser of S and max(F, C), with T plus the rides between F and there. The
number of the rides, which the reconciliation says as well, goes with the metres. Where a period was
closed between F and there, what that says goes before F and T.

A reset is pending until its consumer looks at it, and from then on applied or superseded. Only the
newest is applied. It is superseded as well when F is past S: then this database was restored to an
earlier time, and at F the consumer would skip rides that are still to come.

The reader locks the checkpoint before anything is read, so that any batch of a consumer of this
name, in this process or another, is counted wholly before the reset or wholly after it; and a
second process that wants to apply the same reset waits, and then finds it applied.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

import psycopg

from consumers.totals.closing import newest as newest_closing
from unified_log.database import one_row
from unified_log.readers.held_out import TAKE_BACK

NEWEST = """
    SELECT resets.id, reconciliation_id, status = 'pending',
           reconciliations.position, reconciliations.rides, reconciliations.total_distance,
           checkpoints.position, consumer_states.rides, consumer_states.total_distance,
           last_sent_id
    FROM resets
    JOIN reconciliations ON reconciliations.id = reconciliation_id
    JOIN checkpoints ON kind = consumer_kind AND checkpoints.name = consumer_name
    JOIN consumer_states USING (kind, name)
    CROSS JOIN streamer_state
    WHERE consumer_name = %s ORDER BY resets.id DESC LIMIT 1
"""

APPLY = """
    WITH moved AS (
        UPDATE checkpoints SET position = %(to_position)s, resets_applied = resets_applied + 1,
            counted_at = CASE WHEN %(to_position)s > position
                              THEN clock_timestamp() ELSE counted_at END
        WHERE kind = 'total' AND name = %(name)s
    ), counted AS (
        UPDATE consumer_states SET (rides, total_distance) = (
            SELECT %(reconciled_rides)s + count(*),
                   %(reconciled_total)s + coalesce(sum(distance), 0)
            FROM rides WHERE id > %(reconciled_upto)s AND id <= %(to_position)s
        )
        WHERE name = %(name)s RETURNING rides, total_distance
    )
    UPDATE resets
    SET status = 'applied', changed_at = now(),
        from_position = %(position)s, from_total = %(total)s,
        to_position = %(to_position)s, to_total = counted.total_distance
    FROM counted WHERE id = %(id)s
    RETURNING reconciliation_id,
              from_position, %(rides)s::bigint, from_total, to_position, counted.rides, to_total
"""

RECONCILED = ("reconciled_upto", "reconciled_rides", "reconciled_total")
# Up to the one that was looked at: a newer one may have arrived in the meantime.
SUPERSEDE = """
    UPDATE resets SET status = 'superseded', changed_at = now()
    WHERE consumer_name = %s AND status = 'pending' AND id <= %s
    RETURNING reconciliation_id
"""


class Newest(NamedTuple):
    """The newest reset of a consumer, with everything that decides its effect; see above."""

    id: int
    reconciliation: int
    is_pending: bool
    reconciled_upto: int  # F
    reconciled_rides: int
    reconciled_total: Decimal  # T, in metres
    position: int  # C
    rides: int
    total: Decimal
    last_sent: int  # S


class Applied(NamedTuple):
    """Where the consumer stood before a reset, and after it; totals are in metres."""

    reconciliation: int
    from_position: int
    from_rides: int
    from_total: Decimal
    to_position: int
    to_rides: int
    to_total: Decimal


@dataclass
class Reset:
    """What happened to a consumer's pending resets; each is named by its reconciliation."""

    applied: Applied | None = None
    ahead: int | None = None  # superseded because it is about rides that are still to come
    superseded: list[int] = field(default_factory=list)  # by a newer one


def apply_newest(connection: psycopg.Connection, name: str) -> Reset:
    """Apply the newest reset of the consumer `name`, if pending, and supersede all others.

    For a transaction, READ COMMITTED, that has locked the checkpoint: each statement then sees what
    the lock has waited for.
    """
    result = Reset()
    row = connection.execute(NEWEST, [name]).fetchone()
    if row is None:  # deleted with the consumer
        return result
    newest = Newest(*row)
    if newest.is_pending and newest.reconciled_upto <= newest.last_sent:
        result.applied = _apply(connection, name, newest)
    elif newest.is_pending:
        result.ahead = newest.reconciliation
    superseded = connection.execute(SUPERSEDE, [name, newest.id])
    result.superseded = [r for (r,) in superseded if r != result.ahead]
    return result


def _apply(connection: psycopg.Connection, name: str, newest: Newest) -> Applied:
    to_position = min(newest.last_sent, max(newest.reconciled_upto, newest.position))
    values = {"name": name, "to_position": to_position, **newest._asdict()}
    if closing := newest_closing(connection, newest.reconciled_upto, to_position):
        values |= dict(zip(RECONCILED, closing, strict=True))
    connection.execute(TAKE_BACK, ["total", name])  # the sum of all rides has them
    return Applied(*one_row(connection.execute(APPLY, values)))
