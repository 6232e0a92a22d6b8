"""`python -m consumers NAME`: reads the log and keeps the running total of all rides.

It guarantees that every ride counts once. The log may tell of a ride again (it is skipped), lose
it (the chain shows the gap, and the gap is summed from the rides), or carry nonsense (it is set
aside); the total and the checkpoint move in one transaction. Nothing counts before the streamer has
committed it, so that all that is counted or healed is settled. Should the total be wrong all the
same, a reconciliation asks for a reset: it comes before the next batch, in a transaction of its
own, is applied once, and leaves the exact total of the rides up to the checkpoint.

A crash leaves behind, by the step at which it comes:

* before the commit: nothing. The batch is read again from the checkpoint; the reset is pending.
* after the commit: nothing. The next batch starts behind this one; the reset is marked as applied.

An idle consumer blocks on the stream, outside any transaction, and every IDLE_ROUND seconds looks
for what no entry would tell it: a missing tail, a log that was wiped or restored, and a reset.
"""

import argparse
import logging
from collections.abc import Callable
from decimal import Decimal

import psycopg
import redis

from consumers.consumer import Consumer
from consumers.reset import Reset
from consumers.round import Healed, Round, Step
from rocket_rides import database, process, sessions, settings
from rocket_rides.faults import strikes
from rocket_rides.log import Log

logger = logging.getLogger("consumer")

IDLE_ROUND = 0.5  # seconds
HELD_POLL = 0.001  # seconds; the streamer commits right after it has sent
TIMEOUT = "10s"


def run(name: str, config: settings.Settings, stop: process.Stop) -> None:
    """Consume until `stop`."""

    def session(progress: Callable[[], None]) -> None:
        with (
            database.connect(
                config.postgres_url,
                sessions.starting(sessions.consumer(name)),
                lock_timeout=TIMEOUT,
                idle_in_transaction_session_timeout=TIMEOUT,
            ) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            database.require_current_schema(connection)
            consumer = Consumer(connection, log, name, config.batch_size)
            logger.info(
                "%s stands at ride %d, total %s m", name, consumer.at.ride_id, consumer.at.total
            )
            pauses, complaint = process.delays(HELD_POLL, IDLE_ROUND), process.Complaint(1)
            while not stop:
                crash_at = Step.BEFORE_COMMIT if strikes(config.crash_rate) else None
                before = consumer.at.total
                done = consumer.run_once(wait=IDLE_ROUND, crash_at=crash_at)
                if done.held:
                    complaint("the log is ahead of what the streamer has committed")
                    stop.wait(next(pauses))
                    continue
                pauses, complaint = process.delays(HELD_POLL, IDLE_ROUND), process.Complaint(1)
                progress()
                sessions.at_work(connection)
                report(name, done, before, consumer, config.print_rides)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


def report(name: str, done: Round, before: Decimal, consumer: Consumer, each_ride: bool) -> None:
    """Say what a round did: one line, or one for each ride with its running total."""
    total = before
    for found in done.found:
        total += found.distance
        if isinstance(found, Healed):
            logger.warning(
                "%s healed a gap in the log: %s, %s m, from ride %d to %d",
                name,
                rides(found.rides),
                found.distance,
                found.gap.after + 1,
                found.gap.upto,
            )
        elif each_ride:
            logger.info("ride %8d %12s m   total %s m", found.id, found.distance, total)
    for letter in done.dead:
        logger.warning("%s set aside entry %s: %s", name, letter.entry.redis_id, letter.reason)
    if done.rewound:
        logger.warning("%s: the log was wiped or restored; reading it again from its start", name)
    if done.reset:
        report_reset(name, done.reset)
    if done.found and not each_ride:
        counted = rides(len(done.found))
        logger.info("%s up to %d, total %s m", counted, consumer.at.ride_id, consumer.at.total)
    if done.skipped:
        logger.info("skipped %s sent again", rides(done.skipped))


def report_reset(name: str, reset: Reset) -> None:
    """Say what a reset changed: somebody will want to know why the total was wrong."""
    for reconciliation in reset.superseded:
        logger.info("%s: a newer reset supersedes that of reconciliation %d", name, reconciliation)
    if reset.ahead:
        logger.warning(
            "%s was not reset by reconciliation %d, which is ahead of what the streamer has sent: "
            "was this database restored to an earlier time?",
            name,
            reset.ahead,
        )
    if reset.applied:
        logger.warning(
            "%s was reset by reconciliation %d: total %s m at ride %d, was %s m at ride %d",
            name,
            reset.applied.reconciliation,
            reset.applied.to_total,
            reset.applied.to_ride_id,
            reset.applied.from_total,
            reset.applied.from_ride_id,
        )


def rides(count: int) -> str:
    """A number of rides, in words."""
    return "1 ride" if count == 1 else f"{count} rides"


def consumer_name(name: str) -> str:
    """Check a consumer's name as given on the command line."""
    if not name.strip() or len(name) > settings.NAME_LENGTH or not name.isprintable():
        raise argparse.ArgumentTypeError(
            f"a consumer's name has 1 to {settings.NAME_LENGTH} printable characters"
        )
    return name


def main() -> None:
    """Run the consumer NAME until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m consumers", description=__doc__)
    parser.add_argument("name", type=consumer_name, help="the consumer's name")
    name = parser.parse_args().name
    config = settings.load()
    process.log_to_stdout(config.log_level)
    run(name, config, process.Stop().on_signals())


if __name__ == "__main__":
    main()
