"""The streamer: one leads and moves settled staged records into the log; any other is a standby.

It guarantees that every settled record is sent to the log, in order of id, and that each entry
names the one before it and the term of the leader that sent it (`unified_log.terms`).

A crash leaves behind, by the step at which it comes:

* before the batch is sent: nothing, or a term under which nothing was sent, and which the next
  leader's term replaces. The batch is still staged; the next leader sends it.
* after it is sent, before the commit: a batch that is in the log and still staged. The next leader
  sends it again under its own term; readers then skip the first copy.
* after the commit: nothing. The batch is in the log and no longer staged.

The leader lock is an advisory lock of the same connection that drains: losing the connection means
losing the lock and the open transaction as well, so the worst that a stale leader can do is send a
batch again. The server disconnects a leader that hangs, after LEADER_TIMEOUT seconds. If it hangs
while the server sends it rows, its standby has it disconnected, after twice as long. Then the
standby takes over.
"""

import logging
import time

import psycopg
import redis

from unified_log import database, process, session_settings, sessions, waiting
from unified_log.faults import strikes
from unified_log.locks import LEADER
from unified_log.log import Log, LogExhausted, LogFull
from unified_log.settings import Settings
from unified_log.standby import wait_for_the_lead
from unified_log.streamer import checks
from unified_log.streamer.doorbell import Doorbell
from unified_log.streamer.drain import Streamer
from unified_log.streamer.trimming import Caps, Trimmer
from unified_log.streamer.upkeep import Alarms, Upkeep
from unified_log.tracing import fields

logger = logging.getLogger("streamer")

FULL_POLL = 0.2  # seconds between attempts to append to a full log
# After a batch that was not full, the leader rests for as long as it took: meanwhile the readers,
# which it has just woken, have the processors, and records gather, so that there are fewer batches.
LONGEST_REST = 0.005  # seconds
IDLE_POLL = 0.2  # seconds between looks at the sequence, for records that did not ring


def run(config: Settings, stop: process.Stop, double_send_rate: float = 0) -> None:
    """Lead or stand by until `stop`; send batches twice at this rate, on purpose."""
    alarms = Alarms()

    def session(progress: waiting.Progress) -> None:
        timeout = f"{config.leader_timeout}s"
        with (
            database.connect(
                config.postgres_url,
                sessions.starting(sessions.STREAMER),
                statement_timeout=timeout,
                lock_timeout=timeout,
                idle_in_transaction_session_timeout=timeout,
                idle_session_timeout=timeout,
                **session_settings.INDEX_SCANS,
            ) as connection,
            Log(config.log_url, config.stream_name, replicas=config.log_replicas) as log,
        ):
            config.require_schema(connection)
            database.require_writable(connection)
            if wait_for_the_lead(
                connection, LEADER, stop, progress, sessions.STREAMER, config.leader_timeout
            ):
                lead(connection, log, config, stop, progress, alarms, double_send_rate)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


def lead(
    connection: psycopg.Connection,
    log: Log,
    config: Settings,
    stop: process.Stop,
    progress: waiting.Progress,
    alarms: Alarms,
    double_send_rate: float = 0,
) -> None:
    """Drain the outbox until `stop`, and trim the log once a second.

    Raises Unavailable, psycopg.Error or redis.RedisError.
    """
    checks.require_rising_sequence(connection)
    log.wait_for_replicas()  # else each attempt would leave a batch behind
    streamer = Streamer(connection, log, config.batch_size)
    progress.announce(f"leading; the log is complete up to position {streamer.last_sent}")
    trimmer = Trimmer(connection, log, Caps(config.stream_max_length, config.stream_max_age))
    upkeep = Upkeep(connection, log, trimmer, alarms)
    doorbell = Doorbell(connection)
    warn = waiting.LimitedWarning()
    woken = False
    while not stop:
        if not woken:  # else a record is waiting
            upkeep.when_due(streamer.last_sent, streamer.types)
        woken = False
        double_send = strikes(double_send_rate)
        began = time.monotonic()
        try:
            sent = streamer.run_once(double_send=double_send)
        except LogFull as refusal:
            trimmer.make_room()
            warn(f"{refusal}; trimming old entries")
            stop.wait(FULL_POLL)
            continue
        except LogExhausted as reason:
            log.start_anew()
            logger.warning("%s: started a new one; consumers heal what they had not read", reason)
            continue
        sessions.at_work(connection)
        if sent:
            progress.made()
            again = ", twice (injected)" if double_send else ""
            about = fields(streamer.traces)
            logger.debug("sent %d records up to %d%s", sent, streamer.last_sent, again, extra=about)
            if sent < config.batch_size:
                stop.wait(min(time.monotonic() - began, LONGEST_REST))
        else:
            if upkeep.rounds > 1:  # a second without an error
                progress.made()
            if streamer.barrier.waiting:
                stop.wait(streamer.barrier.pause)
            elif doorbell.armed:
                woken = doorbell.wait(stop, IDLE_POLL)
            else:
                doorbell.arm()
