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
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, suppress

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
from rocket_rides.waiting import FIRST_DELAY, Progress

logger = logging.getLogger("consumer")

IDLE_ROUND = 1.0  # seconds
TIMEOUT = "10s"
# Seconds for what is in flight at the end, and for the loop that reads; honcho kills after 5.
GRACE, LONGEST_END = 3.0, 2.0
LOCK_TIMEOUT = "2s"  # for a row that somebody holds: the others are written without it


class Worker:
    """One process: its two loops, and what outlives their sessions."""

    def __init__(self, name: str, config: settings.Settings, courier: Courier) -> None:
        self.name = name
        self._config = config
        self._limits = limits(config)
        self._delivery = Delivery(courier, Breaker(), self._limits)
        self._upkeep = Upkeep(self._limits.sweep_after)
        self._report = Report(name, self._delivery.breaker)
        self._stopped = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Have both loops end."""
        self._stopped.set()
        self._delivery.end()
        if self._reading:  # Redis may hang
            asyncio.get_running_loop().call_later(LONGEST_END, self._reading.cancel)

    async def run(self) -> None:
        """Read and deliver until `stop`; after an injected crash, start anew. Raises Refused."""
        while not self._stopped.is_set():
            try:
                async with asyncio.TaskGroup() as loops:
                    reading = self._keep(self._read, (psycopg.OperationalError, Unavailable))
                    self._reading = loops.create_task(reading)
                    loops.create_task(self._keep(self._deliver))
            except* InjectedCrash as crashes:
                self._delivery.forget()
                logger.warning("%s: starting again from the inbox", crashes.exceptions[0])
                await asyncio.sleep(FIRST_DELAY)
        if not self._delivery.is_done:  # it was between two sessions
            with suppress(Unavailable, psycopg.Error, TimeoutError):
                async with asyncio.timeout(GRACE):
                    await self._finish()

    async def _read(self, progress: Progress) -> None:
        """One session of the loop that reads the log into the inbox."""
        config = self._config
        async with await self._connect(sessions.inbox(self.name)) as connection:
            identity = await asyncio.to_thread(self._checked, name_of)
            group = Group(config.log_url, config.stream_name, identity, self.name)
            async with aclosing(group):
                inbox = Inbox(connection, group, self._limits.claim_after)
                while not self._stopped.is_set():
                    with self._maybe_crashing(Step.AFTER_READING, Step.BEFORE_ACKNOWLEDGING):
                        done = await inbox.run_once(wait=IDLE_ROUND)
                    progress.made()
                    self._report(done)
                    if done.queued:
                        self._delivery.has_news(inbox.is_settled)
                with suppress(redis.RedisError):
                    await group.leave()

    async def _deliver(self, progress: Progress) -> None:
        """One session of the loop that works off the queue."""
        session = sessions.receipts(self.name)
        async with await self._connect(sessions.starting(session)) as connection:
            queue = Queue(connection, self.name, self._limits.attempts, self._limits.lease)
            self._delivery.has_news()  # perhaps the session before had more
            progress.announce(f"{self.name} delivers receipts")
            is_new = True
            while not self._stopped.is_set():
                with self._maybe_crashing(Step.BEFORE_SENDING, Step.BEFORE_SAVING):
                    done = await self._delivery.run_once(queue, self._upkeep, wait=IDLE_ROUND)
                progress.made()
                if is_new:
                    await connection.execute(sessions.RENAME, [session], prepare=False)
                    is_new = False
                self._report(done)
            self._report(await self._delivery.finish(queue, GRACE), last=True)

    async def _finish(self) -> None:
        """Write down how things stand, in a session of its own."""
        async with await self._connect(sessions.receipts(self.name)) as connection:
            queue = Queue(connection, self.name, self._limits.attempts, self._limits.lease)
            self._report(await self._delivery.finish(queue, 0), last=True)

    async def _keep(
        self,
        session: Callable[[Progress], Awaitable[None]],
        said_elsewhere: tuple[type[Exception], ...] = (),
    ) -> None:
        """Run a session again and again, with back-off; say what fails, unless the other does."""
        progress = Progress()
        while not self._stopped.is_set():
            try:
                await session(progress)
            except Refused:
                raise
            except (Unavailable, psycopg.Error, redis.RedisError) as error:
                if not isinstance(error, said_elsewhere):
                    progress.failed(in_one_line(error))
                pause = next(progress.waits)
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._stopped.wait()

    async def _connect(self, name: str) -> psycopg.AsyncConnection:
        """A session in which every statement of `statements` has its plan and its limits."""
        await asyncio.to_thread(self._checked, database.require_writable)
        return await database.connect_async(
            self._config.postgres_url,
            name,
            lock_timeout=LOCK_TIMEOUT,
            statement_timeout=TIMEOUT,
            idle_in_transaction_session_timeout=TIMEOUT,
            # A plan from when the tables were empty must not read all of one later.
            **session_settings.NESTED_LOOPS,
        )

    def _checked(self, look: Callable[[psycopg.Connection], database.Row]) -> database.Row:
        """Look at the database, once its schema is found to be ours."""
        url = self._config.postgres_url
        with database.connect(url, f"{self.name} (looking)", statement_timeout=TIMEOUT) as looking:
            database.require_current_schema(looking)
            return look(looking)

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
        worker = Worker(name, config, courier)
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.remove_reader(stop)
            worker.stop()

        loop.add_reader(stop, end)
        await worker.run()


def main() -> None:
    """Run the worker NAME until SIGTERM or SIGINT."""
    name = running.parse_name("consumers.receipts", __doc__)
    config, stop = running.start()
    secret = settings.require_signing_secret(config)
    try:
        asyncio.Runner().run(work(name, config, secret, stop))
    except* Refused as refused:
        raise SystemExit(in_one_line(refused.exceptions[0])) from None
    # A look-up of the receiver's address may hang in a thread, and Python would wait for it.
    logging.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
