"""The doorbell: a record that is staged while the leader sleeps wakes it.

So the leader sends a record at once, without looking for one all the time. Whoever stages a record
rings with a NOTIFY, in the same statement, if the bell is armed. The leader arms it only before it
sleeps, and whoever rings disarms it (`stage` in the schema): the first record after a pause rings,
and no other. Notifying each time would be expensive: such a transaction holds a lock, of
which there is one in the whole server, until its commit is on disk. So commits would queue, at a
third of the rate.

No record is missed between the last look and the sleep. The leader arms the bell, looks once more
at the numbers that were drawn, and only then sleeps. One that drew its number before that look is
seen; any other finds the bell armed.

Nothing relies on the bell. A ring is lost when the transaction that rang is rolled back. So the
leader also looks now and then, and arms it again. A leader that dies leaves it armed: then one
record rings in vain.
"""

import select

import psycopg

from unified_log.process import Stop

LISTEN = "LISTEN doorbell"
# Where it is armed already, nothing is written.
ARM = """
    SELECT setval('doorbell', 1) WHERE pg_sequence_last_value('doorbell'::regclass) IS NULL
"""


class Doorbell:
    """The leader's end of it, on the `connection` that drains. Methods raise psycopg.Error."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self.armed = False
        connection.add_notify_handler(self._rings)
        connection.execute(LISTEN)

    def arm(self) -> None:
        """Have the next record ring. Look once more before you `wait`."""
        self.armed = True
        self._connection.execute(ARM)

    def wait(self, stop: Stop, seconds: float) -> bool:
        """Sleep until it rings, or until `stop`; returns whether either has come.

        After `seconds` without a ring, one may have been lost, so the bell is armed again.
        """
        if not self.armed:  # it rang during that last look
            return True
        woken, _, _ = select.select([stop.fileno(), self._connection.fileno()], [], [], seconds)
        if not woken:
            self.arm()
        return bool(woken)

    def _rings(self, _: psycopg.Notify) -> None:
        """Called by whichever statement reads the notification."""
        self.armed = False
