"""Emit: write a run's result as a row, and ask whoever was wrong to put it right.

Consumers reset their totals and recount their ratings, the rollup computes minutes anew, and the
sweep looks again at the rides from the first one whose receipt has no outcome.
"""

from collections.abc import Sequence

import msgspec
import psycopg

from analytics.result import CountedRatings, PastRun, Result, WrongMinute
from unified_log.database import one_row
from unified_log.errors import Unavailable

MAY_NOT_WRITE_TO = """
    SELECT string_agg(name, ', ') FROM (
        SELECT name FROM unnest('{reconciliations,resets,recomputations,runs}'::text[]) name
        WHERE NOT has_table_privilege(name, 'INSERT')
        UNION ALL
        SELECT 'readers' WHERE NOT has_any_column_privilege('readers', 'UPDATE')
        UNION ALL
        SELECT 'approvals' WHERE NOT has_any_column_privilege('approvals', 'UPDATE')
        UNION ALL
        SELECT 'checkpoints' WHERE NOT has_column_privilege('checkpoints', 'recount', 'UPDATE')
        UNION ALL
        SELECT 'receipts_state' WHERE NOT has_any_column_privilege('receipts_state', 'UPDATE')
    ) refused
"""
RECORD = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    VALUES (%s, %s, %s, %s, %s) RETURNING id
"""
# Leaves out consumers that were removed meanwhile.
ASK_FOR_RESETS = """
    INSERT INTO resets (reconciliation_id, consumer_name)
    SELECT %s, name FROM readers
    WHERE kind = 'total' AND name = ANY(%s) ORDER BY name FOR KEY SHARE
    RETURNING consumer_name
"""
ASK_FOR_MINUTES = """
    INSERT INTO recomputations (reconciliation_id, minute, lowest_ride_id)
    SELECT %s, minute, lowest FROM unnest(%s::timestamptz[], %s::bigint[]) wrong (minute, lowest)
"""
LOCK = "SELECT FROM receipts_state FOR UPDATE"
SET_BACK = "SELECT set_back_receipts(%s)"  # the sweep looks again at the receipts from a ride on
# Of consumers of ratings. Each recounts by itself.
ASK_FOR_RECOUNTS = """
    UPDATE checkpoints SET recount = true WHERE kind = 'ratings' AND name = ANY(%s)
"""
PAST_RUNS = """
    SELECT id, started_at, status, verdicts FROM runs WHERE status IN ('agreed', 'wrong', 'held')
    ORDER BY id DESC LIMIT 14
"""


def require_rights(connection: psycopg.Connection) -> None:
    """Raise Unavailable if `emit` would be refused: better before Spark has read everything."""
    if tables := one_row(connection.execute(MAY_NOT_WRITE_TO))[0]:
        raise Unavailable(f"this role may not write to {tables}; with --check the job only reads")


def emit(
    connection: psycopg.Connection,
    result: Result,
    resets: Sequence[str],
    minutes: Sequence[WrongMinute],
) -> None:
    """Write the row, and the requests, in the caller's transaction; note them in `result`.

    The sweep, and the consumers of ratings, are asked later, by `set_back`.
    """
    values = [result.position, result.total.distance, result.total.rides, result.seconds]
    [result.reconciliation] = one_row(connection.execute(RECORD, [*values, _compared(result)]))
    if resets:
        asked = connection.execute(ASK_FOR_RESETS, [result.reconciliation, [*resets]])
        result.resets = [name for (name,) in asked]
    if minutes:
        which = [wrong.minute for wrong in minutes]
        lowest = [wrong.lowest_ride_id for wrong in minutes]
        connection.execute(ASK_FOR_MINUTES, [result.reconciliation, which, lowest])
        result.requested = True


def set_back(
    connection: psycopg.Connection,
    result: Result,
    recounts: Sequence[CountedRatings],
    *,
    sweeps: bool = True,
) -> None:
    """Have the sweep look at what is missing, if it `sweeps`, and consumers of ratings recount.

    Comes last, since these rows keep workers and consumers waiting. The receipts' row comes first,
    and is locked even if nothing is missing: a repair of the log (`unified_log.repair`) waits for
    it before it asks for recounts, so these come after the resets that this run has asked for.
    """
    connection.execute(LOCK)
    missing = result.receipts.missing.ids if result.receipts and sweeps else ()
    if missing:
        connection.execute(SET_BACK, [missing[0]])
    if recounts:
        connection.execute(ASK_FOR_RECOUNTS, [[each.name for each in recounts]])
    result.requested = result.requested or bool(missing or recounts)


def _compared(result: Result) -> str:
    """What the next run continues from, and what later reports show of this run; as JSON."""
    row: dict[str, object] = {
        "new_rides": result.new.rides,
        "ranges_verified": result.verified,
        "consumers": [each._asdict() | {"drift": each.drift} for each in result.consumers],
    }
    if rollup := result.rollup:
        row["rollup"] = {
            "proved_upto": rollup.proved_upto,
            "agrees": rollup.agrees,
            "minutes": rollup.minutes,
            "wrong": len(rollup.wrong),
            "set_aside": rollup.set_aside,
        }
    if receipts := result.receipts:
        row["receipts"] = {
            "proved_upto": receipts.proved.upto,
            "look_again": receipts.proved.look_again,
            "agrees": receipts.agrees,
            "rides": receipts.rides,
            "missing": receipts.missing.rides,
            "strange": receipts.strange.rides,
        }
    if outbox := result.outbox:
        row["outbox"] = {
            "agrees": outbox.agrees,
            "staged": outbox.staged,
            "sent": outbox.sent.rides,
            "orphans": outbox.orphans.rides,
            "different": outbox.different.rides,
        }
    if verdict := result.ratings:
        consumers = [each._asdict() for each in verdict.consumers]
        row["ratings"] = {"agrees": verdict.agrees, "consumers": consumers}
    return msgspec.json.Encoder(decimal_format="number").encode(row).decode()


def past_runs(connection: psycopg.Connection) -> list[PastRun]:
    """The last fourteen runs, the newest first."""
    return [PastRun(*row) for row in connection.execute(PAST_RUNS)]
