"""Hot standby: several processes do the same work, one at a time."""

from itertools import count

import psycopg

from unified_log import sessions
from unified_log.locks import try_lock
from unified_log.process import Stop
from unified_log.waiting import Progress

POLL = 0.2  # seconds between attempts to take the lead
LOOKS_AT_LEADER = 5  # attempts between two checks whether the leader hangs
STEADY = 1.0  # seconds of standing by after which that counts as working

# A leader may hang while Postgres sends it rows: then Postgres waits, and no time-out ends that.
# So the leader's standby, which has the same role, ends its session.
END_HUNG = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity JOIN pg_locks USING (pid)
    WHERE locktype = 'advisory' AND (classid, objid, objsubid) = (0, %s, 1) AND granted
      AND datname = current_database() AND state = 'active' AND wait_event = 'ClientWrite'
      AND pg_has_role(usesysid, 'MEMBER') AND query_start < now() - make_interval(secs => 2 * %s)
"""


def wait_for_the_lead(
    connection: psycopg.Connection,
    lock: int,
    stop: Stop,
    progress: Progress,
    who: str,
    timeout: float,
) -> bool:
    """Poll for the lock (waiting for it would hold back vacuum); False when stopped.

    `who` is what the log calls such a process. A leader that hangs for twice `timeout` seconds is
    ended.
    """
    for looks in count():
        if stop or try_lock(connection, lock):
            break
        if looks % LOOKS_AT_LEADER == 0:
            connection.execute(END_HUNG, [int(lock), timeout])
        progress.announce(f"another {who} leads; standing by")
        if looks * POLL > STEADY:  # the other may be failing as well
            progress.made()
            sessions.at_work(connection)
        stop.wait(POLL)
    return not stop
