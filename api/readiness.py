"""Whether rides can be taken, as far as we can tell without taking one."""

import psycopg
from sqlalchemy import Connection, text

from api.database import committed, driver
from rocket_rides import revisions
from unified_log import database
from unified_log.errors import Unavailable

# In one query: may this session write, which privileges does its role lack, and is the sequence's
# next number free?
# * DELETE on idempotency_keys is not checked: without it old keys are not pruned, but every ride
#   can be taken. `api.pruning` warns of it.
# * One column of a table stands for all of them. This query itself needs SELECT on rides and
#   streamer_state.
# * An identity column draws its number without a privilege on the sequence. Reading the sequence
#   needs one: without it, and before the first number, its position is not checked.
# * The greatest id is as of the statement's start, so whatever is drawn meanwhile is above it. Of
#   `log_records`, it would wait for whoever has locked the table of another kind.
LOOK = text("""
    SELECT current_setting('transaction_read_only')::boolean AS read_only,
           (SELECT string_agg(DISTINCT privilege || ' on ' || name, ', ')
            FROM (VALUES ('rides', 'distance', 'INSERT'), ('stage', NULL, 'EXECUTE'),
                         ('idempotency_keys', 'ride_id', 'INSERT'),
                         ('idempotency_keys', 'ride_id', 'SELECT')) needed (name, field, privilege)
            WHERE NOT CASE WHEN field IS NOT NULL THEN has_column_privilege(name, field, privilege)
                  ELSE has_function_privilege(name::regproc, privilege) END
           ) AS missing_rights,
           drawn >= seqmax AS at_its_end,
           drawn < greatest((SELECT max(id) FROM rides), (
               SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1
           )) AS behind
    FROM pg_sequence, LATERAL (
        SELECT CASE WHEN has_sequence_privilege(seqrelid, 'SELECT, USAGE')
               THEN pg_sequence_last_value(seqrelid) END AS drawn
    ) sequence
    WHERE seqrelid = 'log_position'::regclass
""")


def require_readiness(connection: Connection) -> None:
    """Raise Unavailable or DBAPIError if posting a ride would fail now."""
    try:
        revisions.check_schema(driver(connection))
    except psycopg.Error as error:
        reason = revisions.refusal(error)
        raise Unavailable(f"the database is not available: {reason}") from None
    with committed(connection):
        found = connection.execute(LOOK).one_or_none()
    if found is None:
        return
    if found.read_only:
        raise Unavailable(f"rides can't be taken: {database.READ_ONLY}")
    if found.missing_rights:
        raise Unavailable(f"rides can't be taken: the role lacks {found.missing_rights}")
    if found.at_its_end:
        raise Unavailable("rides can't be taken: the sequence log_position has reached its end")
    if found.behind:
        raise Unavailable(
            "rides can't be taken: the sequence log_position is behind the records;"
            " the streamer says what to run"
        )
