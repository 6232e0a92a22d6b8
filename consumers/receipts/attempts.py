"""Attempts: each is written to Postgres before it is made.

So a ride whose receipt kills its worker each time has as many attempts as workers that it killed,
and is a dead letter after RECEIPT_ATTEMPTS of them, whoever takes it up.

A row is also a lease. Until `due_at` nobody else makes an attempt: not while one is under way, and
not before the next one is due. Whoever claims the entry of a worker that is gone ignores the lease
of an attempt whose end nobody wrote down; nobody ignores what the receiver asked for.

When a worker dies, whatever it had under way is suspected: after the second such attempt a receipt
is tried alone, so that the one that kills its worker takes no other along again and again.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple

import psycopg

from consumers.receipts.receipt import Receipt
from rocket_rides.receipts import WEBHOOK_ID

NEVER = datetime.min.replace(tzinfo=UTC)
SUSPECT = 2  # attempts in a row whose end nobody wrote down
LEASE_MARGIN = 5.0  # seconds, beyond the time-out of an attempt, until its end is written down
LONGEST_WAIT = 600.0  # seconds; no lease and no delay is as long


def is_due(due_at: str) -> str:
    """The condition that a row is due. One that has longer to wait than any was written while
    Postgres' clock was ahead, and would otherwise wait until the clock is there again.
    """
    return f"({due_at} <= now() OR {due_at} > now() + make_interval(secs => {LONGEST_WAIT}))"


# One statement, so one snapshot: what `rides` says, what came of it so far, and the attempt. Who
# may make one is asked of the row as it is when its lock is taken. In the order of the rides, so
# that two workers with the same rides don't wait for each other. A time that Python can't express
# has been set by hand. A ride that the log has lost is counted with its first attempt of all (its
# row is new: xmax is 0), so once, however many workers and sessions sweep it up.
BEGIN = f"""
    WITH known AS (
        SELECT rides.id AS ride_id, distance, {WEBHOOK_ID} AS webhook_id,
               CASE WHEN created_at >= '0002-01-01' AND created_at < '9999-01-01'
                    THEN created_at END AS created_at,
               outcome IS NULL OR replay_at IS NOT NULL AS is_open,
               coalesce(attempts, 0) AS attempts, coalesce(forgiven, 0) AS forgiven,
               coalesce(unfinished, 0) AS unfinished,
               coalesce({is_due("due_at")}
                        OR unfinished > 0 AND rides.id = ANY(%(taken_over)s), true) AS is_due,
               extract(epoch FROM due_at - now()) AS wait
        FROM receipts_state CROSS JOIN streamer_state
        JOIN rides ON rides.id = ANY(%(rides)s) AND rides.id <= last_sent_id
        LEFT JOIN receipts ON ride_id = rides.id
    ), begun AS (
        INSERT INTO receipts AS kept (ride_id, attempts, unfinished, due_at)
        SELECT ride_id, 1, 1, now() + make_interval(secs => %(lease)s)
        FROM known WHERE is_open ORDER BY ride_id
        ON CONFLICT (ride_id) DO UPDATE SET
            attempts = kept.attempts + 1, unfinished = kept.unfinished + 1,
            due_at = excluded.due_at
        WHERE (kept.outcome IS NULL OR kept.replay_at IS NOT NULL)
          AND ({is_due("kept.due_at")}
               OR kept.unfinished > 0 AND kept.ride_id = ANY(%(taken_over)s))
          AND (kept.unfinished < {SUSPECT} OR kept.ride_id = ANY(%(alone)s))
          AND kept.attempts - kept.forgiven < %(most)s
        RETURNING ride_id, xmax = 0 AS is_first
    ), counted AS (
        INSERT INTO receipts_workers AS worker (name, swept)
        SELECT %(worker)s, count(*) FROM begun
        WHERE is_first AND ride_id = ANY(%(lost)s) HAVING count(*) > 0
        ON CONFLICT (name) DO UPDATE SET swept = worker.swept + excluded.swept
    )
    SELECT ride_id, distance, created_at, webhook_id,
           CASE WHEN begun.ride_id IS NOT NULL THEN 'begun'
                WHEN NOT is_open THEN 'settled'
                WHEN NOT is_due THEN 'leased'
                WHEN attempts - forgiven >= %(most)s THEN 'exhausted'
                WHEN unfinished >= {SUSPECT} AND NOT ride_id = ANY(%(alone)s) THEN 'suspect'
                ELSE 'leased' END,
           attempts - forgiven, forgiven, unfinished, greatest(wait, 0)::float8
    FROM known LEFT JOIN begun USING (ride_id)
"""  # noqa: S608


class Known(NamedTuple):
    """What Postgres says of a ride whose receipt may be due."""

    ride_id: int
    distance: Decimal
    created_at: datetime | None  # None where no calendar of ours has that time
    webhook_id: str
    state: str  # begun, settled, leased, exhausted or suspect
    attempts: int  # so far, without this one, and since the last replay
    forgiven: int  # those before that
    unfinished: int  # of the last ones, so many have no end
    wait: float | None  # seconds, until somebody else may try

    @property
    def receipt(self) -> Receipt:
        taken = self.created_at or NEVER
        return Receipt(self.ride_id, self.distance, taken, self.webhook_id)


class Attempts:
    """The attempts that a worker makes: at most `most` for a receipt, each within `timeout` s."""

    def __init__(
        self, connection: psycopg.Connection, worker: str, most: int, timeout: float
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._most = most
        self._lease = timeout + LEASE_MARGIN

    def begin(
        self,
        rides: Sequence[int],
        taken_over: Sequence[int] = (),
        alone: Sequence[int] = (),
        lost: Sequence[int] = (),
    ) -> dict[int, Known]:
        """Write an attempt for each of `rides` that may have one now, committed on return.

        `taken_over` are those whose entry was claimed from a worker that is gone, `alone` those
        that may be attempted although they are suspected, `lost` those that a sweep has found:
        they count with their first attempt. A ride that is missing from the result is not there, or
        not committed by the streamer. Raises psycopg.Error; then nothing was written.
        """
        values = {
            "rides": list(rides),
            "taken_over": list(taken_over),
            "alone": list(alone),
            "lost": list(lost),
            "worker": self._worker,
            "lease": self._lease,
            "most": self._most,
        }
        found = (Known(*row) for row in self._connection.execute(BEGIN, values))
        return {known.ride_id: known for known in found}
