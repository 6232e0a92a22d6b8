"""`python -m consumers.receipts NAME`: delivers each ride's receipt, together with other workers.

It guarantees that the receipt of every ride is delivered at least once, or is a dead letter:
refused, or tried RECEIPT_ATTEMPTS times. The log is read into an *inbox*; a *queue* is worked off;
a *sweep* proves that the inbox is complete. Inbox and queue are one table
(`consumers.receipts.statements`). The workers share the reading as members of a consumer group, of
which NAME is the member, and the work by leases. Whoever gets a receipt twice sees it by its
`webhook-id`. Only what `rides` says of a ride that the streamer has committed is ever sent.

A crash leaves behind, by the step at which it comes:

* after entries were read: they are pending, and are claimed CLAIM_AFTER seconds later; at once by a
  worker of the same name.
* after their rides were in the inbox: the same, and whoever claims them inserts nothing.
* after attempts were written, or made: leases, which run out RECEIPT_LEASE seconds later. The
  attempts count. After RECEIPT_ATTEMPTS of them the receipt is dead, even if nobody lived to write
  down why; from the second in a row it is quarantined.
* after their ends were written: nothing.

What a server's outage interrupts, here or at the receiver, counts as no attempt (`delivery`,
`breaker`). SIGTERM waits some seconds for what is in flight, and writes down that the rest was
stopped. Two processes may have one NAME: each does its share.
"""

import asyncio
import logging
import os
import random
from contextlib import AbstractContextManager, suppress

import psycopg
import redis

from consumers import running
from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier
from consumers.receipts.delivery import Delivery, Limits
from consumers.receipts.group import Group
from consumers.receipts.inbox import Inbox
from consumers.receipts.queue import Queue
from consumers.receipts.report import Report
from consumers.receipts.round import Step
from consumers.receipts.upkeep import Upkeep
from rocket_rides import database, process, session_settings, sessions, settings
from rocket_rides.errors import Refused, Unavailable, in_one_line
from rocket_rides.faults import InjectedCrash, crash_at, strikes
from rocket_rides.groups import name_of
from rocket_rides.log import Log
from rocket_rides.waiting import FIRST_DELAY, Progress

logger = logging.getLogger("consumer")

IDLE_ROUND = 1.0  # seconds
# Seconds for what is in flight at the end, and for the thread that reads; honcho kills after 5.
GRACE, LONGEST_END = 3.0, 2.0
TIMEOUT = "10s"
SESSION = {
    "lock_timeout": "2s",  # for a row that somebody holds: the others are written without it
    "statement_timeout": TIMEOUT,
    "idle_in_transaction_session_timeout": TIMEOUT,
    # A plan from when the tables were empty must not read all of one later.
    **session_settings.NESTED_LOOPS,
}


class Worker:
    """One process: its two loops, and what outlives their sessions."""

    def __init__(
        self, name: str, config: settings.Settings, courier: Courier, stop: process.Stop
    ) -> None:
        self.name = name
        self._config = config
        self._stop = stop
        self._stopped = asyncio.Event()
        self._limits = limits(config)
        self._delivery = Delivery(courier, Breaker(), self._limits)
        self._upkeep = Upkeep(self._limits.sweep_after)
        self._report = Report(name, self._delivery.breaker)

    async def run(self) -> None:
        """Read, in a thread, and deliver, until the process is to stop. Raises SystemExit."""
        self._loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as loops:
            reading = loops.create_task(asyncio.to_thread(self._keep_reading))
            loops.create_task(self._keep_delivering())

            def end() -> None:
                self._loop.remove_reader(self._stop)
                self._stopped.set()
                self._delivery.end()
                self._loop.call_later(LONGEST_END, reading.cancel)  # Redis may hang

            self._loop.add_reader(self._stop, end)

    def _keep_reading(self) -> None:
        """The loop that reads the log into the inbox. What Postgres lacks, the other one says."""
        unsaid = (psycopg.OperationalError, Unavailable)
        failures = (psycopg.Error, redis.RedisError)
        process.keep_running(self._read, self._stop, *failures, unsaid=unsaid)

    def _read(self, progress: Progress) -> None:
        """One session of it."""
        config = self._config
        with (
            database.connect(
                config.postgres_url, sessions.inbox(self.name), **SESSION
            ) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            database.require_current_schema(connection)
            database.require_writable(connection)
            group = Group(log, name_of(connection), self.name)
            inbox = Inbox(connection, group, self._limits.claim_after)
            while not self._stop:
                with self._maybe_crashing(Step.AFTER_READING, Step.BEFORE_ACKNOWLEDGING):
                    done = inbox.run_once(wait=IDLE_ROUND)
                progress.made()
                self._report.entries(done)
                if done.queued:
                    self._loop.call_soon_threadsafe(self._delivery.has_news, inbox.is_settled)
            with suppress(redis.RedisError):
                group.leave()

    async def _keep_delivering(self) -> None:
        """The loop that works off the queue."""
        progress = Progress()
        while not self._stop:
            try:
                await self._deliver(progress)
            except InjectedCrash as crash:
                self._delivery.forget()
                logger.warning("%s: starting again from the queue", crash)
                await self._pause(FIRST_DELAY)
            except Refused as reason:
                raise SystemExit(in_one_line(reason)) from None
            except (Unavailable, psycopg.Error) as error:
                progress.failed(in_one_line(error))
                await self._pause(next(progress.waits))
        if not self._delivery.is_done:
            with suppress(Unavailable, psycopg.Error, TimeoutError):
                async with asyncio.timeout(GRACE + 1):
                    await self._finish()

    async def _deliver(self, progress: Progress) -> None:
        """One session of it."""
        name = sessions.receipts(self.name)
        async with await self._connect(sessions.starting(name)) as connection:
            queue = self._queue(connection)
            self._delivery.has_news()  # perhaps the session before had more
            progress.announce(f"{self.name} delivers receipts")
            is_new = True
            while not self._stop:
                with self._maybe_crashing(Step.BEFORE_SENDING, Step.BEFORE_SAVING):
                    done = await self._delivery.run_once(queue, self._upkeep, wait=IDLE_ROUND)
                progress.made()
                if is_new:
                    await connection.execute(sessions.RENAME, [name], prepare=False)
                    is_new = False
                self._report(done)

    async def _finish(self) -> None:
        """Write down how things stand, in a session of its own."""
        async with await self._connect(sessions.receipts(self.name)) as connection:
            done = await self._delivery.finish(self._queue(connection), GRACE)
            self._report(done, last=True)

    async def _connect(self, name: str) -> psycopg.AsyncConnection:
        await asyncio.to_thread(self._look)
        return await database.connect_async(self._config.postgres_url, name, **SESSION)

    def _look(self) -> None:
        """Raise Unavailable unless the database is as it must be."""
        url = self._config.postgres_url
        with database.connect(url, f"{self.name} (looking)", statement_timeout=TIMEOUT) as looking:
            database.require_current_schema(looking)
            database.require_writable(looking)

    def _queue(self, connection: psycopg.AsyncConnection) -> Queue:
        return Queue(connection, self.name, self._limits.attempts, self._limits.lease)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _maybe_crashing(self, *steps: Step) -> AbstractContextManager[None]:
        return crash_at(random.choice(steps) if strikes(self._config.crash_rate) else None)


def limits(config: settings.Settings) -> Limits:
    """What the settings tell a worker."""
    return Limits(
        config.receipt_concurrency,
        config.receipt_attempts,
        config.receipt_timeout,
        config.lease,
        config.claim_after,
        config.sweep_after,
    )


async def work(name: str, config: settings.Settings, secret: str, stop: process.Stop) -> None:
    """Be the worker NAME until `stop`."""
    async with Courier(config.receiver_url, secret) as courier:
        await Worker(name, config, courier, stop).run()


def main() -> None:
    """Run the worker NAME until SIGTERM or SIGINT."""
    name = running.parse_name("consumers.receipts", __doc__)
    config, stop = running.start()
    secret = settings.require_signing_secret(config)
    try:
        asyncio.Runner().run(work(name, config, secret, stop))
    except Refused as reason:  # SSL_CERT_FILE
        raise SystemExit(in_one_line(reason)) from None
    # A look-up of the receiver's address may hang in a thread, and Python would wait for it.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
