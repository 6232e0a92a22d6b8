"""`python -m consumers.remove KIND NAME`: removes a reader that is gone for good.

Its checkpoint goes, for which the log is kept, with its state and its resets. A row of
`removed_readers` remains, so that the reconciliation, which knows who was there the last time, does
not miss it. `GET /consumers` lists kinds and names. A reader that only the last reconciliation
knows, since somebody has deleted its checkpoint, is removed, too; so are the receipts, which have
none: whoever stops them for good says so. They are `group receipts`, or, as the reconciliation has
it, `receipts all`. What was delivered stays. With the rollup, all minutes go, as nobody would put
them right any more.

A reader whose process has a session with this database is not removed: it would begin anew, at
once. One of another program (of the kind `outside`, for instance) has sessions of other names, so
end that program first. A process that is started after the removal begins anew, too.
"""

import psycopg

from rocket_rides import fleet, revisions, sessions, settings
from unified_log import database
from unified_log.errors import Refused, Unavailable, in_one_line
from unified_log.process import Parser, show
from unified_log.sessions import reader, starting
from unified_log.words import printable

# How GET /consumers shows the receipts, and how runs know them.
SHOWN, KNOWN = ("group", "receipts"), ("receipts", "all")
LONGEST_LOCK = "5s"  # a reader that somebody paused in the middle of a batch

# Both or neither. Postgres deletes the rows that refer to the checkpoint. `seen`: whom the last
# completed reconciliation saw, here and in READERS. Minutes need no removal: their rollup has one.
# Receipts may have come further since that run.
REMOVE = """
    WITH last AS (
        SELECT readers FROM runs WHERE status IN ('agreed', 'wrong', 'held')
        ORDER BY id DESC LIMIT 1
    ), seen AS (
        SELECT reader.* FROM last,
            jsonb_to_recordset(readers) AS reader(kind text, name text, position bigint)
        WHERE reader.kind <> 'minutes'
    ), gone AS (
        DELETE FROM checkpoints WHERE kind = %(kind)s AND name = %(name)s
        RETURNING kind, name, position
    ), removed AS (
        SELECT kind, name, position FROM gone
        UNION ALL
        SELECT kind, name, greatest(position, CASE kind WHEN 'receipts' THEN (
            SELECT complete_to FROM receipts_state
        ) END)
        FROM seen
        WHERE kind = %(kind)s AND name = %(name)s AND NOT EXISTS (SELECT FROM gone)
    ), noted AS (
        INSERT INTO removed_readers (kind, name, position) SELECT kind, name, position FROM removed
    )
    SELECT position FROM removed
"""
READERS = """
    WITH last AS (
        SELECT readers FROM runs WHERE status IN ('agreed', 'wrong', 'held')
        ORDER BY id DESC LIMIT 1
    ), seen AS (
        SELECT reader.* FROM last,
            jsonb_to_recordset(readers) AS reader(kind text, name text, position bigint)
        WHERE reader.kind <> 'minutes'
    )
    SELECT kind, name FROM checkpoints UNION SELECT kind, name FROM seen ORDER BY kind, name
"""
# Its state, in this order: an indexer that is about to end can't put any back. A new rollup deletes
# the Ick.
ROLLUP = ("rollup", "rollup")
FORGET_MINUTES = (
    "SELECT set_back_rollup(cell_start() + 1)",
    "DELETE FROM ride_minutes",
    "DELETE FROM set_aside_minutes",
)
SESSIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = ANY(%s)
"""
# All workers share the receipts, whatever their names.
WORKERS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database()
      AND (starts_with(application_name, %s) OR starts_with(application_name, %s))
"""


def remove(connection: psycopg.Connection, kind: str, name: str) -> int:
    """Remove a reader; returns the position at which it stood.

    Raises Refused, which says why, or psycopg.Error: then nothing was removed.
    """
    who = KNOWN if (kind, name) == SHOWN else (kind, name)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    with connection.transaction():
        row = connection.execute(REMOVE, {"kind": who[0], "name": who[1]}).fetchone()
        if _is_running(connection, *who):
            if who[0] == "receipts":
                raise Refused("receipts still run: stop them first")
            raise Refused(f"{kind} {name} is running; stop its process first")
        if row is None:
            others = (SHOWN if each == KNOWN else each for each in connection.execute(READERS))
            there = ", ".join(map(" ".join, others)) or "none"
            raise Refused(f"there is no reader {kind} {name}; there is {there}")
        if who == ROLLUP:
            for statement in FORGET_MINUTES:
                connection.execute(statement)
    return int(row[0])


def _is_running(connection: psycopg.Connection, kind: str, name: str) -> bool:
    if kind == "receipts":
        asked = connection.execute(WORKERS, [sessions.RECEIPTS, sessions.INBOX])
    else:
        session = sessions.ROLLUP if kind == "rollup" else reader(kind, name)
        asked = connection.execute(SESSIONS, [[session, starting(session)]])
    return database.one_row(asked) != (0,)


def main() -> None:
    """Remove one, and say where it stood."""
    parser = Parser("python -m consumers.remove", __doc__)
    parser.add_argument(
        "kind", metavar="KIND", help="such as total, ratings, rollup, group or outside"
    )
    parser.add_argument("name", metavar="NAME", nargs="?", help="its name among those of its kind")
    given = parser.parse_args()
    if not given.name:
        parser.error(f"KIND and NAME are expected, such as: total {given.kind}")
    config = settings.load()
    try:
        with database.connect(
            config.postgres_url, "remove", lock_timeout=LONGEST_LOCK
        ) as connection:
            revisions.require_schema(connection, config.cell)
            position = remove(connection, given.kind, given.name)
    except (Unavailable, psycopg.Error, UnicodeError) as reason:  # a byte of a name
        nobody = fleet.not_started(config.data_dir) if config.embedded_postgres else ""
        raise SystemExit(f"not removed: {nobody or printable(in_one_line(reason))}") from None
    removed = printable(f"{given.kind} {given.name}")
    show([f"removed {removed}, which stood at position {position}"])


if __name__ == "__main__":
    main()
