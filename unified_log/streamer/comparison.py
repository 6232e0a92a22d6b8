"""What is staged, beside the rows that it is made of. For the leader, now and then.

A row and its record commit together, and only the leader takes records out: so no snapshot shows
one without the other, but for rows up to `last_sent`. Whoever stages something else than the view
says has readers count what no heal would bring; whoever forgets to stage has them miss a row.
"""

import psycopg

from unified_log.database import one_row
from unified_log.terms import StateLost

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
NEXT = """
    SELECT min(id) FROM staged_log_records
    WHERE id > (SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1)
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
HEAL = "python -m unified_log.repair --from {} has readers heal them"
# Behind a staged record: the chain goes on without them, so no gap shows them.
LATER = f"once the log has passed them, {HEAL}"


class Comparison:
    """Compares what is staged with the rows, from one look to the next."""

    def __init__(self) -> None:
        self._sent: tuple[int, int] | None = None  # STATE at the last look

    def warnings(self, connection: psycopg.Connection) -> list[str]:
        """A line about each sort of difference; usually none. Raises StateLost or psycopg.Error."""
        look = f"SELECT ARRAY({BARE}), ({NEXT}), ARRAY({DIFFERENT})"
        bare, following, different = one_row(connection.execute(look))
        found = self._missed(connection)
        if bare:
            what_to_do = (
                LEAVE_OUT if following is None or bare[0] < following else LATER.format(bare[0])
            )
            found.append(f"inserted, but not staged: rows {_named(bare)}; {what_to_do}")
        if different:
            found.append(f"staged, but not as log_records has it: records {_named(different)}")
        return found

    def _missed(self, connection: psycopg.Connection) -> list[str]:
        """About rows that the log has passed since the last look, more than were sent.

        A repair counts older records as sent: it can hide such rows, but not invent them.
        """
        if (state := connection.execute(STATE).fetchone()) is None:
            raise StateLost
        (after, sent_before), (upto, sent) = self._sent or state, state
        missed = 0
        if 0 < upto - after <= MOST_POSITIONS:
            rows = one_row(connection.execute(ROWS, [after, upto]))[0]
            missed = rows - (sent - sent_before)
        self._sent = state  # last: where a table is locked, the next look counts these
        if missed <= 0:
            return []
        where = f"the rows in positions {after + 1} to {upto}"
        return [f"inserted, but never staged: {missed} of {where}; {HEAL.format(after + 1)}"]


def _named(positions: list[int]) -> str:
    return ", ".join(map(str, positions[:10])) + (" and more" if len(positions) > 10 else "")
