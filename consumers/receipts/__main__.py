"""`python -m consumers.receipts NAME`: delivers each ride's receipt, together with other workers.

It guarantees that the receipt of every ride that was taken since receipts are sent is delivered at
least once, or is a dead letter: refused, or tried RECEIPT_ATTEMPTS times. The workers share the log
as the members of one consumer group, and NAME is the member's name; a second process of one name
stands by. A ride's outcome is in Postgres before its entry is acknowledged, so a ride that has one
is not sent again. Whoever gets a receipt twice sees it by its `webhook-id`. Only what `rides` says
of a ride that the streamer has committed is ever sent, so nothing in the log can forge a receipt.

A crash leaves behind, by the step at which it comes:

* after entries were read: they are pending, and the others claim them a few seconds after the
  session with Postgres is over, or CLAIM_AFTER seconds after the last sign of life.
* after attempts were written, or made: the same, and the attempts count. After RECEIPT_ATTEMPTS of
  them the receipt is dead, even if nobody lived to write down why.
* after outcomes were written: the same, and whoever claims the entries only acknowledges them.
* in the middle of a sweep: nothing. The next sweep finds the same rides, those that were being
  delivered as soon as their last attempt must be over.

What a server's outage interrupts, here or at the receiver, counts as no attempt (`deliveries`,
`breaker`). An idle worker blocks on the stream, and once a second looks after the others.
"""

import logging
import random

import psycopg
import redis

from consumers import running
from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier
from consumers.receipts.deliveries import Deliveries
from consumers.receipts.report import Report
from consumers.receipts.round import Step
from consumers.receipts.worker import Patience, Worker
from rocket_rides import database, process, session_settings, sessions, settings
from rocket_rides.faults import InjectedCrash, crash_at, strikes
from rocket_rides.log import Log
from rocket_rides.waiting import Progress

logger = logging.getLogger("consumer")

IDLE_ROUND = 0.5  # seconds
TIMEOUT = "10s"
STANDBY_POLL = 0.5  # seconds
GRACE = 3.0  # seconds for what is under way at the end; honcho kills after 5


def run(name: str, deliveries: Deliveries, config: settings.Settings, stop: process.Stop) -> None:
    """Be the member `name` until `stop`."""
    report = Report(name, deliveries.breaker)
    patience = Patience(
        config.receipt_attempts, config.receipt_timeout, config.claim_after, config.sweep_after
    )

    def session(progress: Progress) -> None:
        with (
            database.connect(
                config.postgres_url,
                sessions.starting(sessions.receipts(name)),
                lock_timeout=TIMEOUT,
                idle_in_transaction_session_timeout=TIMEOUT,
                # A plan from when the tables were empty must not read all of one later.
                **session_settings.NESTED_LOOPS,
            ) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            database.require_current_schema(connection)
            database.require_writable(connection)
            worker = Worker(connection, log, name, deliveries, patience)
            while not worker.join():
                progress.announce(f"{name} is at work in another process; standing by")
                progress.made()
                sessions.at_work(connection)
                if stop.wait(STANDBY_POLL):
                    return
            progress.announce(f"{name} delivers receipts")
            try:
                while not stop:
                    step = random.choice(list(Step)) if strikes(config.crash_rate) else None
                    with crash_at(step):
                        report(worker.run_once(wait=IDLE_ROUND))
                    progress.made()
                    sessions.at_work(connection)
            except InjectedCrash:
                deliveries.forget()
                raise
            report(worker.finish(GRACE), last=True)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


def main() -> None:
    """Run the worker NAME until SIGTERM or SIGINT."""
    name = running.parse_name("consumers.receipts", __doc__)
    config, stop = running.start()
    secret = settings.require_signing_secret(config)
    with Courier(
        config.receiver_url, secret, config.receipt_concurrency, config.receipt_timeout
    ) as courier:
        run(name, Deliveries(courier, Breaker()), config, stop)


if __name__ == "__main__":
    main()
