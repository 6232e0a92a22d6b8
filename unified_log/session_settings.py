"""What our statements depend on, set in every session with Postgres, whatever its defaults.

A server, a database or a role may have any default; `unified_log.database` sets these when it
opens a session. It does so in a statement, since poolers refuse options in the startup message. A
process passes what else it needs, such as its time-outs, when it connects.

Some defaults are left to whoever runs the server:

* search_path: the tables may live in any schema; all sessions have to find the same one.
* default_transaction_read_only: whoever sets it wants nothing written, and nothing is; the
  processes say so (`database.require_writable`).
* synchronous_commit: standbys may need more than `on`; the streamer warns of less.
"""

from collections.abc import Mapping

# Options of every connection, whatever its URL or the environment say. Text is in UTF-8: a database
# in SQL_ASCII would send bytes. A server that vanishes silently is noticed after about ten seconds.
CONNECTION = {
    "client_encoding": "utf8",
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

EVERY = {
    # A new table has no statistics, so its statements look expensive. Compiling one then takes
    # longer than a client waits.
    "jit": "off",
    # Each statement sees what is committed when it starts. Code that needs more says so.
    "default_transaction_isolation": "read committed",
    # A backslash in a literal, such as a regular expression's, is a backslash.
    "standard_conforming_strings": "on",
    # How values come as text: psycopg reads these forms, and times of a day are those of UTC.
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    # A NULL in an array that we send is a null, not a text.
    "array_nulls": "on",
    # An application may listen for the warning that a commit has reached no standby.
    "client_min_messages": "notice",
    # An error ends its transaction, not its session.
    "exit_on_error": "off",
    # Where a policy would hide rows, a statement is refused: the sum of the others would be wrong.
    # A session that sums and heals nothing may set it on, and go on with what it may see.
    "row_security": "off",
    # Plans that a process relies on. It turns off what must not be used (see below), which only
    # helps while the rest is on.
    "plan_cache_mode": "auto",
    "enable_seqscan": "on",
    "enable_indexscan": "on",
    "enable_indexonlyscan": "on",
    "enable_bitmapscan": "on",
    "enable_tidscan": "on",
    "enable_nestloop": "on",
    "enable_hashjoin": "on",
    "enable_mergejoin": "on",
    "enable_sort": "on",
    # Each process has limits of its own. To heal a long gap may take long.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "transaction_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
}

# For sessions in which an index serves every statement: a new table has no statistics, so the
# planner would scan it.
INDEX_SCANS = {"enable_seqscan": "off", "enable_bitmapscan": "off"}
# For those that also join a few rows with rows that an index finds.
NESTED_LOOPS = {**INDEX_SCANS, "enable_hashjoin": "off", "enable_mergejoin": "off"}


def statement(session: Mapping[str, str]) -> str:
    """The statement that sets EVERY, with what `session` adds or replaces.

    It returns the pid of the server's process, when that started, and how many settings it set.
    Those that an older server does not know (transaction_timeout, before 17) are left out.
    """
    values = ", ".join(f"('{name}', '{value}')" for name, value in {**EVERY, **session}.items())
    return f"""
        SELECT pg_backend_pid(),
            (
                SELECT (extract(epoch FROM backend_start) * 1000000)::bigint
                FROM pg_stat_get_activity(pg_backend_pid())
            ),
            count(set_config(name, value, false))
        FROM (VALUES {values}) each (name, value) WHERE current_setting(name, true) IS NOT NULL
    """  # noqa: S608 (names and values are the code's own)
