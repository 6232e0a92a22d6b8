"""What a leader checks: the servers' durability, the sequence, stranded and unhandled records."""

from collections.abc import Iterable

import psycopg
import redis

from unified_log.errors import Unavailable
from unified_log.log import Log
from unified_log.terms import StateLost

# Where INFO tells a setting, and what it says when the log is safe. Whoever may ask for settings by
# name could read passwords, so the user in docs/production.md may not.
DURABLE_REDIS = {
    "appendonly": ("persistence", "aof_enabled", "1"),
    "maxmemory-policy": ("memory", "maxmemory_policy", "noeviction"),
}
FSYNC = "always"  # of `appendfsync`, which INFO does not tell
MAY_NOT_ASK = (
    "Redis does not let this user read appendfsync: see to it that it is always, by"
    " `redis-cli CONFIG GET appendfsync` as another user"
)
DURABILITY = """
    SELECT name, setting FROM pg_settings
    WHERE (name = 'fsync' AND setting = 'off')
       OR (name = 'synchronous_commit' AND setting IN ('off', 'local'))
"""
# The next number drawn must lie above `taken`: what is above `last_sent` is staged. (`log_records`
# would wait for whoever has locked the table of one kind.)
SEQUENCE = """
    SELECT seqcache, seqincrement, seqcycle,
           (SELECT last_value - (NOT is_called)::int FROM log_position) AS last_drawn,
           greatest(last_sent_id, (
               SELECT max(id) FROM staged_log_records WHERE id > last_sent_id
           )) AS taken
    FROM pg_sequence CROSS JOIN (
        SELECT last_sent_id FROM streamer_state ORDER BY version DESC LIMIT 1
    ) state WHERE seqrelid = 'log_position'::regclass
"""
PUT_FORWARD = (
    "SELECT setval('log_position', greatest((SELECT last_value FROM log_position),"
    " (SELECT max(id) FROM log_records), (SELECT last_sent_id FROM streamer_state)))"
)
STRANDED = "SELECT id FROM staged_log_records WHERE id <= %s ORDER BY id LIMIT 11"
# Readers write the types that they handle into their checkpoints.
UNHANDLED = """
    SELECT type FROM unnest(%s::text[]) type
    WHERE NOT EXISTS (SELECT FROM current_checkpoints WHERE type = ANY(types)) ORDER BY type
"""

# It also makes sessions discard the numbers that they have cached.
AS_MIGRATED = "ALTER SEQUENCE log_position INCREMENT BY 1 CACHE 1 NO CYCLE"


def durability_warnings(connection: psycopg.Connection, log: Log) -> list[str]:
    """Warnings about settings of either server that could lose committed work; usually none."""
    return _of_redis(log) + [
        f"Postgres has {name} {setting}: a crash may lose records whose commit was confirmed"
        for name, setting in connection.execute(DURABILITY)
    ]


def _of_redis(log: Log) -> list[str]:
    try:
        told = {section: log.info(section) for section, _, _ in DURABLE_REDIS.values()}
    except redis.ResponseError:
        return ["Redis does not let this user call INFO: its durability can't be checked"]
    return [
        _may_lose(name, told[section].get(fact, "unknown"), value)
        for name, (section, fact, value) in DURABLE_REDIS.items()
        if told[section].get(fact) != value
    ]


def fsync_warnings(log: Log) -> list[str]:
    """A warning if Redis answers before an entry is on disk.

    Raises redis.ResponseError where it may not ask. That leaves an entry in the server's ACL LOG:
    ask once.
    """
    reply = log.command("CONFIG", "GET", "appendfsync")
    found = reply[1].decode() if reply else "unknown"
    return [] if found == FSYNC else [_may_lose("appendfsync", found, FSYNC)]


def _may_lose(name: str, found: str, value: str) -> str:
    found, value = ({"0": "no", "1": "yes"}.get(each, each) for each in (found, value))
    return (
        f"Redis has {name} {found}, not {value}: the log may lose entries, which readers then heal"
    )


def require_rising_sequence(connection: psycopg.Connection) -> None:
    """Raise Unavailable unless records draw numbers one by one, each above all before it.

    The barrier relies on that. A session draws the numbers that it caches before its transaction
    has the lock; a sequence that runs backwards, or was set back, draws numbers below what was
    sent. Also raises StateLost.
    """
    row = connection.execute(SEQUENCE).fetchone()
    if row is None:
        raise StateLost
    cache, increment, cycles, last_drawn, taken = row
    paused = "nothing is sent, so that no more records are stranded, until you run"
    if cache != 1 or increment != 1 or cycles:
        options = f"CACHE {cache}, INCREMENT BY {increment}{', CYCLE' if cycles else ''}"
        raise Unavailable(
            f"the sequence log_position was changed: it has {options}; {paused}: {AS_MIGRATED}"
        )
    if last_drawn < taken:
        raise Unavailable(
            f"the sequence log_position was set back below record {taken}; {paused}: {PUT_FORWARD}"
        )


def stranded_warnings(connection: psycopg.Connection, last_sent: int) -> list[str]:
    """A warning about stranded records: those up to `last_sent`, which can't be sent any more.

    There are none while the barrier holds: such a record was staged after the log had passed it.
    """
    late = [str(row[0]) for row in connection.execute(STRANDED, [last_sent])]
    if not late:
        return []
    named = ", ".join(late[:10]) + (" and more" if len(late) > 10 else "")
    return [
        f"stranded (staged too late) and never sent: records {named};"
        " python -m unified_log.repair gets them counted"
    ]


def unhandled_warnings(connection: psycopg.Connection, types: Iterable[str]) -> list[str]:
    """A warning about each of these types that no consumer with a checkpoint handles."""
    return [
        f"no consumer with a checkpoint handles records of the type {type_}: all pass over them"
        for (type_,) in connection.execute(UNHANDLED, [list(types)])
    ]
