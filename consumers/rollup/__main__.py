"""`python -m consumers.rollup`: keeps the number of rides in each minute, and their distance.

It guarantees that `ride_minutes` is right for all rides up to `complete_to`, in rollup_state: each
minute has the number and the exact distance of its rides up to there, or up to a later ride.

    log --> marker --> Ick: dirty minutes --> indexer --> ride_minutes, complete_to
            reads      each with its          computes,
                       lowest ride            from rides

A reader marks, an indexer computes, and `complete_to` says how far. Both go on at the same time
(`consumers.rollup.lead`). The work is idempotent, so nothing is incremented, and no transaction
spans the two servers. A minute that is marked a thousand times is computed once; one that is
marked while it is computed is computed again.

A crash leaves behind, by the step at which it comes:

* after minutes were marked, before the checkpoint moved: they are marked again.
* after minutes were reserved or computed, before they were committed: they are computed again.
* after they were committed, before `complete_to` rose: minutes that are right, and marked again.
* anywhere: an Ick, named in rollup_state, which the next leader deletes.

One process leads; any other is a hot standby. Each lead, even after a lost connection, begins a
new generation (`consumers.rollup.generation`), at `complete_to`: so it does not matter what Redis
has lost. A leader that hangs is disconnected by Postgres after LEADER_TIMEOUT seconds.

A leader that hangs before it has marked anything, is superseded, marks, and is killed before it
learns that, leaves an Ick in Redis that nobody reads.
"""

import psycopg
import redis

from consumers.rollup.generation import KIND, NAME
from consumers.rollup.lead import Lead
from consumers.rollup.minutes import SESSION
from consumers.rollup.report import Report
from consumers.rollup.step import MARKING
from rocket_rides import revisions, service, sessions, settings
from rocket_rides.locks import Lock
from unified_log import database, process
from unified_log.log import Log
from unified_log.readers import running
from unified_log.readers.checkpoint import Checkpoint
from unified_log.readers.crashes import Crashes
from unified_log.sessions import starting
from unified_log.standby import wait_for_the_lead
from unified_log.waiting import Progress

# Computing minutes has limits of its own: see `consumers.rollup.indexer`.
LONGEST_STATEMENT = "60s"


def run(config: settings.Settings, stop: process.Stop) -> None:
    """Lead or stand by until `stop`."""
    timeout = f"{config.leader_timeout}s"
    report = Report()
    crashes = Crashes()

    def connect(name: str) -> psycopg.Connection:
        return database.connect(
            config.postgres_url,
            name,
            statement_timeout=LONGEST_STATEMENT,
            lock_timeout=timeout,
            idle_in_transaction_session_timeout=timeout,
            idle_session_timeout=timeout,
            **SESSION,
        )

    def session(progress: Progress) -> None:
        with (
            connect(starting(sessions.ROLLUP)) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            revisions.require_schema(connection, config.cell)
            database.require_writable(connection)
            crashes.settle(Checkpoint(connection, KIND, NAME))
            if wait_for_the_lead(
                connection, Lock.ROLLUP, stop, progress, sessions.ROLLUP, config.leader_timeout
            ):
                with crashes.noted():
                    lead_until_it_fails(connection, log, progress)

    def lead_until_it_fails(connection: psycopg.Connection, log: Log, progress: Progress) -> None:
        rate = config.crash_rate
        with (
            connect(sessions.INDEXER) as indexer_connection,
            Log(config.log_url, config.stream_name) as marks,
        ):
            # Both sessions are open before the generation is drawn. If they reached two primaries,
            # in the middle of a fail-over, the indexer's has no such generation.
            database.require_writable(indexer_connection)
            lead = Lead(connection, log, indexer_connection, marks, config.batch_size)
            upto = lead.generation.complete_to
            progress.announce(f"leading; every minute is right up to position {upto}")
            with lead.indexing(rate):
                running.rounds(lead, [report], connection, progress, stop, rate, MARKING)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


def main() -> None:
    """Run the rollup until SIGTERM or SIGINT."""
    process.take_no_arguments("consumers.rollup", __doc__)
    run(*service.configure_consumer(NAME, "rollup"))


if __name__ == "__main__":
    service.run(main)
