"""Outcomes: what came of attempts, in Postgres before their entries are acknowledged.

`delivered` replaces `dead`, never the reverse: a worker that slept through a claim brings its
result home late, and may still say that the receiver has the receipt. It may say nothing else if
the receipt is being sent anew since: what was refused before a replay says nothing about it.
"""

import random
from collections.abc import Collection, Iterable
from typing import NamedTuple

import psycopg

from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from rocket_rides.errors import in_one_line
from rocket_rides.receipts import WEBHOOK_ID

# Seconds before the second attempt; three times as long before each further one, up to the longest.
# The ten attempts of RECEIPT_ATTEMPTS so take a quarter of an hour: nothing that was only delayed
# for minutes is dead.
FIRST_DELAY, FACTOR, LONGEST_DELAY = 1.0, 3.0, 300.0
# Nobody took the request; when to try again is the same question for all receipts: see `breaker`.
AWAY_DELAY = 0.5

# Seconds until the next attempt, where Postgres does not take the outcome of this one.
UNWRITTEN_DELAY = 60.0

# In the statement that writes the outcomes, so as exact as they are. A row that has its outcome
# already is not in `saved`; one that is being sent anew is still called dead until it is decided.
COUNT = """
    INSERT INTO receipts_workers AS worker (name, delivered, dead)
    SELECT %(worker)s, count(*) FILTER (WHERE outcome = 'delivered'),
           count(*) FILTER (WHERE outcome = 'dead')
    FROM saved WHERE outcome IS NOT NULL AND NOT replay HAVING count(*) > 0
    ON CONFLICT (name) DO UPDATE SET
        delivered = worker.delivered + excluded.delivered, dead = worker.dead + excluded.dead
"""

# An outcome is written a second time when the reply to the first was lost, so that must do no harm.
# The rows are locked in the order of the rides, and then read anew, as the others left them. A
# verdict on a ride of another history, which was restored away meanwhile, is no outcome of ours.
SAVE = f"""
    WITH ended AS MATERIALIZED (
        SELECT receipts.ride_id, kind, ended.reason, delay, before
        FROM unnest(%(rides)s::bigint[], %(ids)s::text[], %(kinds)s::text[], %(reasons)s::text[],
                    %(delays)s::float8[], %(forgiven)s::int[])
            AS ended (ride_id, webhook_id, kind, reason, delay, before)
        CROSS JOIN receipts_state
        JOIN rides ON rides.id = ended.ride_id JOIN receipts ON receipts.ride_id = rides.id
        WHERE ended.webhook_id = {WEBHOOK_ID}
        ORDER BY receipts.ride_id FOR NO KEY UPDATE OF receipts
    ), saved AS (
        UPDATE receipts SET
            outcome = CASE WHEN kind = 'delivered' THEN 'delivered'
                           WHEN {{is_dead}} THEN 'dead' ELSE outcome END,
            decided_at = CASE WHEN kind = 'delivered' OR {{is_dead}} THEN now() ELSE decided_at END,
            dead_at = CASE WHEN kind = 'delivered' THEN NULL
                           WHEN {{is_dead}} THEN now() ELSE dead_at END,
            replay_at = CASE WHEN kind <> 'delivered' AND NOT {{is_dead}} THEN replay_at END,
            dropped_at = CASE WHEN kind <> 'delivered' THEN dropped_at END,
            reason = CASE WHEN kind <> 'delivered' THEN ended.reason END,
            attempts = greatest(attempts - (kind = 'away')::int, forgiven),
            unfinished = 0,
            due_at = now() + make_interval(secs => delay)
        FROM ended
        WHERE receipts.ride_id = ended.ride_id AND outcome IS DISTINCT FROM 'delivered'
          AND (kind = 'delivered'
               OR forgiven = before AND (outcome IS NULL OR replay_at IS NOT NULL))
        RETURNING receipts.ride_id, outcome, replay_at IS NOT NULL AS replay
    ), counted AS ({COUNT})
    SELECT ride_id, outcome, replay FROM saved
""".format(is_dead="(kind = 'refused' OR kind = 'retry' AND attempts - forgiven >= %(most)s)")  # noqa: S608


class Ended(NamedTuple):
    """An attempt that has ended: the `number`-th for its receipt, since the last replay.

    `forgiven` were made before that.
    """

    receipt: Receipt
    verdict: Verdict
    number: int
    forgiven: int = 0

    @property
    def delay(self) -> float:
        """Seconds until the next attempt, should there be one: jittered, so that not all meet."""
        if self.verdict.kind is Kind.AWAY:
            return AWAY_DELAY
        delay = min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** (self.number - 1))
        return max(self.verdict.retry_after or 0, delay * random.uniform(0.5, 1))


class Saved(NamedTuple):
    """What the attempts that ended have come to, by ride."""

    delivered: list[int]
    dead: dict[int, str]  # and why
    again: dict[int, float]  # to be tried again, after so many seconds
    other: list[int]  # nothing was changed: it has an outcome, or is another ride now
    unwritten: dict[int, str]  # Postgres does not take the outcome, and why


def save(connection: psycopg.Connection, worker: str, ended: Collection[Ended], most: int) -> Saved:
    """Write down how these attempts of `worker` ended, one for each ride, committed on return.

    A receipt that was to be tried again is dead once it has had `most` attempts. What Postgres
    does not take holds up no other. Raises psycopg.Error if it takes nothing at all.
    """
    try:
        return _save(connection, worker, ended, most)
    except (psycopg.DataError, psycopg.IntegrityError) as error:
        if len(ended) == 1:
            return Saved([], {}, {}, [], {end.receipt.ride_id: in_one_line(error) for end in ended})
    one_by_one = [save(connection, worker, [end], most) for end in ended]
    saved = Saved([], {}, {}, [], {})
    for one in one_by_one:
        saved.delivered.extend(one.delivered)
        saved.dead.update(one.dead)
        saved.again.update(one.again)
        saved.other.extend(one.other)
        saved.unwritten.update(one.unwritten)
    return saved


def _save(connection: psycopg.Connection, worker: str, ended: Iterable[Ended], most: int) -> Saved:
    delays = {end.receipt.ride_id: (end, end.delay) for end in ended}
    values = {
        "rides": list(delays),
        "ids": [end.receipt.webhook_id for end, _ in delays.values()],
        "kinds": [end.verdict.kind.value for end, _ in delays.values()],
        "reasons": [end.verdict.reason for end, _ in delays.values()],
        "delays": [delay for _, delay in delays.values()],
        "forgiven": [end.forgiven for end, _ in delays.values()],
        "most": most,
        "worker": worker,
    }
    saved = Saved([], {}, {}, [], {})
    for ride_id, outcome, replay in connection.execute(SAVE, values):
        end, delay = delays.pop(ride_id)
        if outcome == "delivered":
            saved.delivered.append(ride_id)
        elif outcome == "dead" and not replay:
            saved.dead[ride_id] = end.verdict.reason
        else:
            saved.again[ride_id] = delay
    saved.other.extend(delays)
    return saved
