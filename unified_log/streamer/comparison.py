"""What is staged, beside the rows that it is made of. For the leader, now and then.

A row and its record commit together, and only the leader takes records out: so no snapshot shows
one without the other, but for rows up to `last_sent`. Whoever stages something else than the view
says has readers count what no heal would bring; whoever forgets to stage has them miss a row.
"""

import psycopg

from unified_log.database import one_row

# A page of records with what their rows say; one without a row differs, too.
DIFFERENT = """
    SELECT staged.id
    FROM (SELECT id, type, data FROM staged_log_records ORDER BY id LIMIT 1000) staged
    LEFT JOIN LATERAL (SELECT type, data FROM log_records WHERE id = staged.id) record ON true
    WHERE (staged.type, staged.data) IS DISTINCT FROM (record.type, record.data)
    ORDER BY id LIMIT 11
"""
BARE = """
    SELECT id FROM (
        SELECT id FROM log_records
        WHERE id > (SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1)
        ORDER BY id LIMIT 1000
    ) unsent
    WHERE NOT EXISTS (SELECT FROM staged_log_records staged WHERE staged.id = unsent.id)
    ORDER BY id LIMIT 11
"""
STATE = """
    SELECT last_sent_id, records_sent FROM streamer_state ORDER BY version DESC LIMIT 1
"""
# Those that still wait to be sent are stranded, which is said elsewhere.
ROWS = """
    SELECT count(*) FROM log_records WHERE id > %s AND id <= %s
    AND NOT EXISTS (SELECT FROM staged_log_records staged WHERE staged.id = log_records.id)
"""
MOST_POSITIONS = 100_000  # counting so many rows takes about 0.02 s; a busier log counts none
LEAVE_OUT = "python -m unified_log.repair leaves them out of the log, and readers heal them"
RECOUNT = "UPDATE checkpoints SET recount = true WHERE recount IS NOT NULL has readers count them"


class Comparison:
    """Compares what is staged with the rows, from one look to the next."""

    def __init__(self) -> None:
        self._sent: tuple[int, int] | None = None  # STATE at the last look

    def warnings(self, connection: psycopg.Connection) -> list[str]:
        """A line about each sort of difference; usually none. Raises psycopg.Error."""
        found = self._missed(connection)
        bare, different = one_row(connection.execute(f"SELECT ARRAY({BARE}), ARRAY({DIFFERENT})"))
        if bare:
            found.append(f"inserted, but not staged: rows {_named(bare)}; {LEAVE_OUT}")
        if different:
            found.append(f"staged, but not as log_records has it: records {_named(different)}")
        return found

    def _missed(self, connection: psycopg.Connection) -> list[str]:
        """About rows that the log has passed since the last look, more than were sent.

        A repair counts older records as sent: it can hide such rows, but not invent them.
        """
        before, self._sent = self._sent, one_row(connection.execute(STATE))
        (after, sent_before), (upto, sent) = before or self._sent, self._sent
        if not 0 < upto - after <= MOST_POSITIONS:
            return []
        missed = one_row(connection.execute(ROWS, [after, upto]))[0] - (sent - sent_before)
        if missed <= 0:
            return []
        where = f"the rows in positions {after + 1} to {upto}"
        return [f"inserted, but never staged: {missed} of {where}; {RECOUNT}"]


def _named(positions: list[int]) -> str:
    return ", ".join(map(str, positions[:10])) + (" and more" if len(positions) > 10 else "")
