"""`python -m rocket_rides.health KIND [NAME [OF]]`: is this process at work? For health checks.

A streamer or a rollup (leading or standing by), a consumer or a receipts' worker is at work while
its session with Postgres has completed a round of work (`unified_log.sessions`) and has been
active recently: even an idle one sends a query at least every ten seconds. Exits with 0 when there
is such a session, else with 1.
"""

import psycopg

from rocket_rides import settings
from unified_log import database, sessions
from unified_log.errors import Unavailable, in_one_line
from unified_log.process import Parser

PATIENCE = "5s"
# Seconds in which an idle process sends some queries; a busy one is at work however long it takes.
SILENCE = 30
NAMED = ("consumer", "receipts")  # the kinds of which there are several processes

# A server that hides when a session was last active still shows that the session exists.
AT_WORK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = %s AND datname = current_database()
      AND (state = 'idle' AND state_change < now() - make_interval(secs => %s)) IS NOT TRUE
"""


def is_at_work(connection: psycopg.Connection, session: str, silence: float = SILENCE) -> bool:
    """Whether a session of that name has been active in the last `silence` seconds.

    `session` is one of the names in `unified_log.sessions`.
    """
    return connection.execute(AT_WORK, [session, silence]).fetchone() != (0,)


def main() -> int:
    """Return 0 when the process has a session that is at work, else 1."""
    parser = Parser("python -m rocket_rides.health", __doc__)
    parser.add_argument("kind", choices=[sessions.STREAMER, sessions.ROLLUP, *NAMED])
    parser.add_argument("name", nargs="?", default="", help="of a consumer or receipts' worker")
    parser.add_argument("of", nargs="?", default="total", help="a consumer's kind (default: total)")
    asked = parser.parse_args()
    if bool(asked.name) != (asked.kind in NAMED):
        parser.error(f"only {' and '.join(NAMED)} take a name, and both need one")
    match asked.kind:
        case "consumer":
            session = sessions.reader(asked.of, asked.name)
        case "receipts":
            session = sessions.receipts(asked.name)
        case _:
            session = asked.kind
    try:
        url = settings.load().postgres_url
        with database.connect(url, "health", statement_timeout=PATIENCE) as connection:
            return 0 if is_at_work(connection, session) else 1
    except (Unavailable, psycopg.Error) as reason:
        raise SystemExit(in_one_line(reason)) from None


if __name__ == "__main__":
    raise SystemExit(main())
