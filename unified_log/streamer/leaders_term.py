"""The leader's term: begun before it sends anything, revoked when stranded records are repaired.

What terms are for, and what readers make of them, is in `unified_log.terms`.
"""

import secrets

import psycopg

from unified_log.errors import Unavailable
from unified_log.terms import TERM_BYTES, StateLost, Term, last_sent

REPLACED_KEPT = 100

# Refused when more was sent than last_sent says: a later term began, or the next record is not
# staged. (A row and its record commit together; records are deleted as they are sent, in order.)
BEGIN = """
    INSERT INTO terms (after, term) SELECT last_sent_id, %(term)s FROM streamer_state
    WHERE NOT EXISTS (SELECT FROM terms WHERE after > last_sent_id)
      AND coalesce((
          SELECT EXISTS (SELECT FROM staged_log_records staged WHERE staged.id = records.id)
          FROM log_records records WHERE id > last_sent_id ORDER BY id LIMIT 1
      ), true)
    ON CONFLICT (after) DO UPDATE
    SET term = excluded.term, began_at = excluded.began_at,
        replaced = (ARRAY[terms.term] || terms.replaced)[1:%(kept)s]
    RETURNING after
"""
# Nothing sent up to some position counts any longer: readers heal it from the tables.
REVOKE = """
    WITH gone AS (DELETE FROM terms RETURNING after, term, replaced)
    SELECT coalesce((array_agg(name ORDER BY after DESC))[1:%(kept)s], '{}')
    FROM gone CROSS JOIN unnest(term || replaced) name
"""
# Nothing counts before it is committed as sent: so whoever stands past last_sent proves that more
# was. Otherwise the next record was never sent, and its row was inserted without it.
NEVER_SENT = """
    SELECT (SELECT min(id) FROM log_records WHERE id > last_sent_id) FROM streamer_state
    WHERE NOT EXISTS (SELECT FROM checkpoints WHERE position > last_sent_id)
      AND NOT EXISTS (SELECT FROM terms WHERE after > last_sent_id)
"""
# Leaves such rows out, up to the next staged record: the next `prev` shows them as a gap. Only what
# is settled: a transaction in flight may yet stage a lower one. Compare-and-set, since a leader may
# be sending; and only where they were never sent, as NEVER_SENT asks. The number is the largest id.
LEAVE_OUT = """
    UPDATE streamer_state SET last_sent_id = bare.last, records_sent = records_sent + bare.rows
    FROM (
        SELECT max(id) AS last, count(*) AS rows FROM log_records
        WHERE id > %(last_sent)s AND id <= %(settled)s AND id < coalesce(
            (SELECT min(id) FROM staged_log_records WHERE id > %(last_sent)s), 9223372036854775807
        )
    ) bare
    WHERE last_sent_id = %(last_sent)s AND bare.rows > 0
      AND NOT EXISTS (SELECT FROM checkpoints WHERE position > last_sent_id)
      AND NOT EXISTS (SELECT FROM terms WHERE after > last_sent_id)
    RETURNING bare.rows
"""
OWN = "INSERT INTO terms (after, term, replaced) VALUES (%s, %s, %s)"
START = "SELECT cell_start()"


def begin_term(connection: psycopg.Connection) -> Term:
    """Begin a term, committed when this returns: for the leader, before it sends anything.

    Raises StateLost when `last_sent` is gone, or lower than what was sent, and Unavailable when the
    next row was inserted without its record.
    """
    name = _draw()
    if row := connection.execute(BEGIN, {"term": name, "kept": REPLACED_KEPT}).fetchone():
        return Term(name, row[0])
    if row := connection.execute(NEVER_SENT).fetchone():
        raise Unavailable(
            f"row {row[0]} was inserted without its record, so the log can't have it. Nothing is"
            " sent until you run python -m unified_log.repair; readers then heal it from its table"
        )
    raise StateLost(
        f"says that nothing after position {last_sent(connection)} was sent, but more was"
    )


def leave_out(connection: psycopg.Connection, settled: int) -> int:
    """Let the log go on after rows that were inserted without records; returns how many they were.

    `settled` is the position up to which no transaction is open (`unified_log.streamer.barrier`).
    """
    values = {"last_sent": last_sent(connection), "settled": settled}
    row = connection.execute(LEAVE_OUT, values).fetchone()
    return row[0] if row else 0


def revoke(connection: psycopg.Connection, upto: int) -> None:
    """Have readers count nothing that the log says about records up to `upto`.

    `upto` is at most `last_sent`. The leader loses its term and begins another.
    """
    with connection.transaction():
        [(replaced,)] = connection.execute(REVOKE, {"kept": REPLACED_KEPT})
        [(start,)] = connection.execute(START)
        connection.execute(OWN, [start, _draw(), replaced])
        if upto > start:
            connection.execute(OWN, [upto, _draw(), []])


def _draw() -> str:
    return secrets.token_hex(TERM_BYTES)
