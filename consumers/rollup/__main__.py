"""`python -m consumers.rollup`: keeps the number of rides in each minute, and their distance.

It guarantees that `ride_minutes` is right for all rides up to `complete_to`, in rollup_state: each
minute has the number and the exact distance of its rides up to there, or up to a later ride.

The work is idempotent, so nothing is incremented, and no transaction spans the two servers. The
marker takes what a reader finds in the log, and marks minutes as dirty, in a set in Redis
(`consumers.rollup.dirty`); the indexer computes dirty minutes from the rides. A minute that is
marked a thousand times is computed once.

A crash leaves behind, by the step at which it comes:

* after minutes were marked, before the checkpoint moved: they are marked again.
* after minutes were computed, before they left the dirty set: they are computed again.
* after they left it, before `complete_to` rose: minutes that are right, and marked again.
* anywhere: a dirty set, named in rollup_state, which the next leader deletes.

One process leads; any other is a hot standby. Each lead, even after a lost connection, begins a
new generation (`consumers.rollup.generation`), at `complete_to`: so it does not matter what Redis
has lost. A leader that hangs is disconnected by Postgres after LEADER_TIMEOUT seconds.

Two limits: a Redis that loses writes while the connection stays open, as behind a proxy that fails
over, is noticed by its replication id, which the user in REDIS_URL must be allowed to see (INFO).
And a leader that was superseded while it hung deletes the marks that it has made since; if it is
killed before it has, they stay in Redis, where nobody reads them.
"""

import psycopg
import redis

from consumers import running
from consumers.checkpoint import Checkpoint
from consumers.crashes import Crashes
from consumers.rollup.generation import KIND, NAME
from consumers.rollup.lead import Lead
from consumers.rollup.minutes import SESSION
from consumers.rollup.report import Report
from consumers.rollup.step import IN_A_ROUND
from rocket_rides import database, process, sessions, settings
from rocket_rides.locks import Lock
from rocket_rides.log import Log
from rocket_rides.standby import wait_for_the_lead
from rocket_rides.waiting import Progress

# Computing minutes has limits of its own: see `consumers.rollup.indexer`.
LONGEST_STATEMENT = "60s"


def run(config: settings.Settings, stop: process.Stop) -> None:
    """Lead or stand by until `stop`."""
    timeout = f"{config.leader_timeout}s"
    report = Report()
    crashes = Crashes()

    def session(progress: Progress) -> None:
        with (
            database.connect(
                config.postgres_url,
                sessions.starting(sessions.ROLLUP),
                statement_timeout=LONGEST_STATEMENT,
                lock_timeout=timeout,
                idle_in_transaction_session_timeout=timeout,
                idle_session_timeout=timeout,
                **SESSION,
            ) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            database.require_current_schema(connection, config.cell)
            database.require_writable(connection)
            crashes.settle(Checkpoint(connection, KIND, NAME))
            if wait_for_the_lead(
                connection, Lock.ROLLUP, stop, progress, sessions.ROLLUP, config.leader_timeout
            ):
                with crashes.noted():
                    lead = Lead(connection, log, config.batch_size)
                    upto = lead.generation.complete_to
                    progress.announce(f"leading; every minute is right up to position {upto}")
                    rate = config.crash_rate
                    running.rounds(lead, [report], connection, progress, stop, rate, IN_A_ROUND)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


def main() -> None:
    """Run the rollup until SIGTERM or SIGINT."""
    process.take_no_arguments("consumers.rollup", __doc__)
    run(*running.start(NAME, "rollup"))


if __name__ == "__main__":
    main()
