"""Hot standby: several processes do the same work, one at a time."""

from itertools import count

import psycopg

from rocket_rides import sessions
from rocket_rides.locks import Lock, try_lock
from rocket_rides.process import Stop
from rocket_rides.waiting import Progress

POLL = 0.2  # seconds between attempts to take the lead
STEADY = 1.0  # seconds of standing by after which that counts as working


def wait_for_the_lead(
    connection: psycopg.Connection, lock: Lock, stop: Stop, progress: Progress, who: str
) -> bool:
    """Poll for the lock (waiting for it would hold back vacuum); False when stopped.

    `who` is what the process is called in its own log.
    """
    for looks in count():
        if stop or try_lock(connection, lock):
            break
        progress.announce(f"another {who} leads; standing by")
        if looks * POLL > STEADY:  # the other may be failing as well
            progress.made()
            sessions.at_work(connection)
        stop.wait(POLL)
    return not stop
