"""What a leader looks at, and says when something is not as it should be."""

import psycopg

from rocket_rides.log import Invalid, Log, Record, decode
from rocket_rides.process import Unavailable

DURABILITY = """
    SELECT name, setting FROM pg_settings
    WHERE (name = 'fsync' AND setting = 'off')
       OR (name = 'synchronous_commit' AND setting IN ('off', 'local'))
"""
OVERTAKEN = "SELECT id FROM staged_log_records WHERE id <= %s ORDER BY id LIMIT 10"
IS_A_RIDE = "SELECT EXISTS (SELECT FROM rides WHERE id = %s AND distance = %s)"

NEWEST_LOOKED_AT = 100


def durability_warnings(database: psycopg.Connection, log: Log) -> list[str]:
    """What of the two servers' settings could lose committed work; empty when all is well."""
    return log.durability_warnings() + [
        f"Postgres has {name} {setting}: a crash may lose rides that were answered with 201"
        for name, setting in database.execute(DURABILITY)
    ]


def overtaken_records(database: psycopg.Connection, last_sent: int) -> list[int]:
    """The first staged records up to `last_sent`: there are none while the barrier holds.

    A record there was staged behind the log's back; the log can't take it any more.
    """
    return [row[0] for row in database.execute(OVERTAKEN, [last_sent])]


def require_same_history(database: psycopg.Connection, log: Log, last_sent: int) -> None:
    """Raise Unavailable when the log tells of rides that this database has never had.

    That is what a Postgres restored to an earlier time, or failed over with loss, looks like: it
    will draw numbers again that the log already carries. After a mere crash between sending and
    committing, the log's last entry is past last_sent too, but it is a ride.
    """
    last = _last_record(log)
    if last is None or last.id <= last_sent:
        return
    row = database.execute(IS_A_RIDE, [last.id, last.distance]).fetchone()
    if row != (True,):
        raise Unavailable(
            f"the log ends with ride {last.id}, which this database does not have (last sent: "
            f"{last_sent}): was Postgres restored to an earlier time? Nothing is sent until the "
            f"stream is deleted: redis-cli DEL {log.name} (consumers heal from the rides)"
        )


def _last_record(log: Log) -> Record | None:
    """The newest entry that the streamer wrote: it is chained to the record before it.

    What others may have put into the stream is no sign of anything.
    """
    records: list[Record] = []
    for entry in log.newest(NEWEST_LOOKED_AT):
        try:
            records.append(decode(entry.fields))
        except Invalid:
            continue
    ids = {record.id for record in records}
    return next((r for r in records if r.prev in ids), records[-1] if records else None)
