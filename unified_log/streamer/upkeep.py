"""What the leader does besides draining: it trims the log and checks what the log rests on."""

import logging
import time
from collections.abc import Iterable, Mapping

import psycopg
import redis

from unified_log.log import Clustered, Log
from unified_log.streamer import checks
from unified_log.streamer.comparison import Comparison
from unified_log.streamer.held_snapshots import HeldSnapshots
from unified_log.streamer.trimming import Trimmer

logger = logging.getLogger(__name__)

UPKEEP_EVERY = 1.0  # seconds
LOOK_EVERY = 30.0  # seconds; this reads the outbox from its start, and the tables of records
# While a snapshot is held elsewhere, that also visits every record that was sent since.
BRIEFLY = "SET LOCAL statement_timeout = '1s'"
NOT_LOOKED = (
    "the outbox can't be looked through within a second: some session holds an old snapshot, or has"
    " locked a table of records"
)
AN_HOUR = 3600.0


class Alarms:
    """The warnings that one streamer has logged, over all of its sessions.

    A line is logged when it becomes true, and once an hour while it stays true.
    """

    def __init__(self) -> None:
        self._due: dict[str, float] = {}
        self._may_ask = True  # for Redis' settings
        self._comparison = Comparison()
        self._snapshots = HeldSnapshots()

    def look(
        self, connection: psycopg.Connection, log: Log, last_sent: int, types: Iterable[str]
    ) -> None:
        """Say what is not as it should be; `types` are those of the records that were sent."""
        self.say(
            self._outbox(connection, last_sent)
            | dict.fromkeys(checks.durability_warnings(connection, log), logging.WARNING)
            | dict.fromkeys(self._snapshots.warnings(connection), logging.WARNING)
            | self._fsync(log)
            | dict.fromkeys(checks.unhandled_warnings(connection, types), logging.WARNING)
        )

    def _outbox(self, connection: psycopg.Connection, last_sent: int) -> dict[str, int]:
        found = {}
        try:
            with connection.transaction():
                connection.execute(BRIEFLY)
                stranded = checks.stranded_warnings(connection, last_sent)
                found = dict.fromkeys(stranded, logging.ERROR)
                return found | dict.fromkeys(self._comparison.warnings(connection), logging.WARNING)
        except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable):
            return found | {NOT_LOOKED: logging.ERROR}

    def _fsync(self, log: Log) -> dict[str, int]:
        if self._may_ask:
            try:
                return dict.fromkeys(checks.fsync_warnings(log), logging.WARNING)
            except Clustered:
                raise
            except redis.ResponseError:  # hosted servers refuse it in words of their own
                self._may_ask = False
        return {checks.MAY_NOT_ASK: logging.INFO}

    def say(self, lines: Mapping[str, int]) -> None:
        """Log those of `lines` that are due; `lines` is all that is true now, with the levels."""
        now = time.monotonic()
        was_due, self._due = self._due, {}
        for line, level in lines.items():
            due = was_due.get(line, now)
            if now >= due:
                logger.log(level, line)
                due = now + AN_HOUR
            self._due[line] = due


class Upkeep:
    """The upkeep of one session."""

    def __init__(
        self, connection: psycopg.Connection, log: Log, trimmer: Trimmer, alarms: Alarms
    ) -> None:
        self.rounds = 0
        self._connection = connection
        self._log = log
        self._trimmer = trimmer
        self._alarms = alarms
        self._due = self._look_at = 0.0

    def when_due(self, last_sent: int, types: Iterable[str]) -> None:
        """Trim, and check the sequence, once in UPKEEP_EVERY seconds; look once in LOOK_EVERY.

        Raises Unavailable, psycopg.Error or redis.RedisError.
        """
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            self._alarms.look(self._connection, self._log, last_sent, types)
        if now >= self._due:
            self._due = now + UPKEEP_EVERY
            self.rounds += 1
            self._log.require_primary()  # who was replaced may go on to take what we send
            self._trimmer.trim()
            checks.require_rising_sequence(self._connection)
