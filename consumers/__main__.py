"""`python -m consumers NAME`: reads the log and keeps the running total of all rides.

It guarantees that every ride counts once. The log may tell of a ride again (it is skipped), lose it
(the chain shows the gap, and the gap is summed from the rides), carry nonsense (it is set aside) or
what is not this database's (it is not believed: `rocket_rides.terms`); the total and the checkpoint
move in one transaction. Nothing counts before the streamer has committed it, so that all that is
counted or healed is settled. Should the total be wrong all the same, a reconciliation asks for a
reset: it comes before the next batch, in a transaction of its own, is applied once, and leaves the
exact total of the rides up to the checkpoint.

A crash leaves behind, by the step at which it comes:

* before the commit: nothing. The batch is read again from the checkpoint; the reset is pending.
* after the commit: nothing. The next batch starts behind this one; the reset is marked as applied.

An idle consumer blocks on the stream, outside any transaction, and every IDLE_ROUND seconds looks
for what no entry would tell it: a missing tail, a log that was wiped or restored, and a reset.
"""

import argparse

import psycopg
import redis

from consumers.consumer import Consumer
from consumers.report import Report
from consumers.round import Step
from rocket_rides import database, fleet, process, sessions, settings, waiting
from rocket_rides.faults import strikes
from rocket_rides.log import Log

IDLE_ROUND = 0.5  # seconds
HELD_POLL = 0.001  # seconds; the streamer commits right after it has sent
TIMEOUT = "10s"


def run(name: str, config: settings.Settings, stop: process.Stop) -> None:
    """Consume until `stop`."""
    report = Report(name, each_ride=config.print_rides)

    def session(progress: waiting.Progress) -> None:
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
            at = consumer.at
            progress.announce(f"{name} stands at ride {at.ride_id}, total {at.total} m")
            pauses, complaint = waiting.delays(HELD_POLL, IDLE_ROUND), waiting.Complaint(1)
            while not stop:
                crash_at = Step.BEFORE_COMMIT if strikes(config.crash_rate) else None
                before = consumer.at.total
                done = consumer.run_once(wait=IDLE_ROUND, crash_at=crash_at)
                progress.made()
                sessions.at_work(connection)
                if done.held:
                    complaint("the log is ahead of what the streamer has committed")
                    stop.wait(next(pauses))
                    continue
                pauses, complaint = waiting.delays(HELD_POLL, IDLE_ROUND), waiting.Complaint(1)
                report.round(done, before, consumer.at)

    process.keep_running(session, stop, psycopg.Error, redis.RedisError)


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
    fleet.refuse_to_join(config.data_dir)
    process.log_to_stdout(config.log_level)
    run(name, config, process.Stop().on_signals())


if __name__ == "__main__":
    main()
