"""The outbox: each staged record is unsent has a row, and says what the row says.

One statement, so one snapshot. A row and its record commit together; the streamer deletes records
in the transaction in which it moves `last_sent`. So no snapshot shows a record without its row, or
one at or below `last_sent`, unless somebody or a bug has put it there. Nothing repairs such a
record by itself: docs/reconcile.md says what a person does.
"""

import psycopg

from analytics.result import OutboxVerdict, WrongRides
from analytics.rows import NAMED
from unified_log.database import one_row

# The data is compared as JSON.
WRONG = """
    SELECT count(*),
           count(*) FILTER (WHERE sent), array_agg(id ORDER BY id) FILTER (WHERE sent),
           count(*) FILTER (WHERE orphan), array_agg(id ORDER BY id) FILTER (WHERE orphan),
           count(*) FILTER (WHERE different), array_agg(id ORDER BY id) FILTER (WHERE different)
    FROM (
        SELECT staged.id, staged.id <= last_sent_id AS sent, record.id IS NULL AS orphan,
               record.id IS NOT NULL AND (staged.type, staged.data)
                   IS DISTINCT FROM (record.type, record.data) AS different
        FROM staged_log_records staged LEFT JOIN log_records record USING (id)
        CROSS JOIN streamer_state
    ) staged
"""


def prove(connection: psycopg.Connection) -> OutboxVerdict:
    """Compare every staged record with its row, and with `last_sent`."""
    staged, *kinds = one_row(connection.execute(WRONG))
    counted = zip(kinds[::2], kinds[1::2], strict=True)
    wrong = [WrongRides(count, tuple(ids or [])[:NAMED]) for count, ids in counted]
    return OutboxVerdict(staged, *wrong)
