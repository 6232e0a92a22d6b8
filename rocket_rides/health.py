"""`python -m rocket_rides.health PROCESS`: is this process at work? For health checks.

PROCESS is `streamer`, `rollup`, `reader KIND NAME` (such as `reader total consumer0`) or `receipts
NAME`. A streamer or a rollup (leading or standing by), a reader or a receipts' worker is at work
while its session with Postgres has completed a round of work (`unified_log.sessions`) and has been
active recently: even an idle one sends a query at least every ten seconds. Exits with 0 when there
is such a session, and the database's schema serves this code, else with 1, and says why. With
--here, only a process of this host, or container, counts.
"""

import psycopg

from rocket_rides import revisions, sessions, settings
from unified_log import database
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Parser
from unified_log.sessions import PLACES, STREAMER, place, reader
from unified_log.words import printable

PATIENCE = "5s"
# Seconds in which an idle process sends some queries; a busy one is at work however long it takes.
SILENCE = 30

# A server that hides when a session was last active still shows that the session exists.
AT_WORK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = %s AND datname = current_database()
      AND (state = 'idle' AND state_change < now() - make_interval(secs => %s)) IS NOT TRUE
"""
HERE = """
      AND pid IN (SELECT pid FROM pg_locks
                  WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (%s, %s, 2))
"""


def is_at_work(
    connection: psycopg.Connection, session: str, silence: float = SILENCE, *, here: bool = False
) -> bool:
    """Whether a session of that name has been active in the last `silence` seconds.

    `session` is a name of `unified_log.sessions` or `rocket_rides.sessions`; `here` leaves out
    those of other hosts.
    """
    values = [session, silence]
    if not here:
        return connection.execute(AT_WORK, values).fetchone() != (0,)
    return connection.execute(AT_WORK + HERE, [*values, PLACES, place()]).fetchone() != (0,)


def main() -> None:
    """Return when the process has a session that is at work; else end with 1, and say why."""
    parser = Parser("python -m rocket_rides.health", __doc__)
    parser.add_argument("process", nargs="+", metavar="PROCESS")
    parser.add_argument("--here", action="store_true", help="on this host, or in this container")
    given = parser.parse_args()
    match given.process:
        case [session] if session in (STREAMER, sessions.ROLLUP):
            pass
        case ["reader", kind, name]:
            session = reader(kind, name)
        case ["receipts", name]:
            session = sessions.receipts(name)
        case _:
            parser.error("streamer, rollup, reader KIND NAME or receipts NAME is expected")
    try:
        url = settings.load().postgres_url
        with database.connect(url, "health", statement_timeout=PATIENCE) as connection:
            revisions.check_schema(connection)
            if is_at_work(connection, session, here=given.here):
                return
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(in_one_line(reason)) from None
    where = " on this host" if given.here else ""
    raise SystemExit(
        f"no {printable(' '.join(given.process))} is at work{where}: no session of that name with"
        f" this database was active in the last {SILENCE} seconds"
    )


if __name__ == "__main__":
    main()
