"""A worker's two loops, in sessions with the servers: one reads the log, one works off the queue.

The first goes on while the receiver is away, the second while Redis is. What is in flight has an
event loop, on a thread of its own: it goes on between two sessions.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from threading import Thread

import psycopg
import redis

from consumers.receipts.courier import Courier
from consumers.receipts.delivery import Delivery
from consumers.receipts.group import Group, name_of
from consumers.receipts.inbox import Inbox
from consumers.receipts.queue import Queue
from consumers.receipts.statements import MAKE_WORKER
from rocket_rides import revisions, sessions, settings
from rocket_rides.revisions import APPLICATION
from unified_log import database, process, session_settings
from unified_log.errors import Unavailable, in_one_line
from unified_log.log import Log
from unified_log.readers.report import Report
from unified_log.schema import LOG, serving
from unified_log.sessions import renaming, starting
from unified_log.waiting import Progress

logger = logging.getLogger("consumer")

IDLE_ROUND = 1.0  # seconds, after which a loop sees that it is to stop
# After SIGTERM, the seconds for what is in flight, for writing that down, and for the loop that
# reads: it has ended by then unless Redis hangs, and a kill does it no harm. honcho kills after 5.
GRACE, LONGEST_SAVE, LONGEST_END = 2.5, 1.0, 1.5
SESSION = {
    "lock_timeout": "2s",  # for a table, or the worker's own row of counts, that somebody holds
    "statement_timeout": "10s",
    # A plan that was made while a table was empty must not read all of it later.
    **session_settings.NESTED_LOOPS,
}


class Worker:
    """One process: its two loops, and what outlives their sessions."""

    def __init__(
        self, name: str, config: settings.Settings, secrets: list[str], stop: process.Stop
    ) -> None:
        self._name = name
        self._config = config
        self._stop = stop
        self._courier = Courier(config.receiver_url, secrets)
        self._delivery = Delivery(
            self._courier, config.receipt_concurrency, config.receipt_timeout, config.sweep_after
        )
        self._report = Report(name)
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        """Read and deliver until `stop`. Raises SystemExit where only a person can help."""
        Thread(target=self._loop.run_forever, daemon=True).start()
        self._await(self._courier.__aenter__())
        reading = ThreadPoolExecutor(1).submit(
            process.keep_running, self._read, self._stop, psycopg.Error, redis.RedisError
        )
        reading.add_done_callback(lambda _: self._stop.ask())  # no loop goes on alone
        try:
            process.keep_running(self._deliver, self._stop, psycopg.Error)
            self._await(self._finish())
        finally:
            self._await(self._courier.__aexit__())
        with suppress(TimeoutError):  # Redis may hang
            reading.result(LONGEST_END)

    def _read(self, progress: Progress) -> None:
        """One session of the loop that reads the log into the inbox."""
        config = self._config
        has_news = partial(self._loop.call_soon_threadsafe, self._delivery.has_news)
        with (
            self._session(sessions.inbox(self._name)) as connection,
            Log(config.log_url, config.stream_name) as log,
        ):
            group = Group(log, name_of(connection), self._name)
            inbox = Inbox(connection, group, config.claim_after, self._report, has_news)
            while not self._stop:
                inbox.run_once(wait=IDLE_ROUND)
                progress.made()

    def _deliver(self, progress: Progress) -> None:
        """One session of the loop that works off the queue."""
        self._await(self._work_off(progress))

    async def _work_off(self, progress: Progress) -> None:
        session = sessions.receipts(self._name)
        async with self._queue(starting(session)) as queue:
            await asyncio.to_thread(self._look)  # after `_queue` has its lock
            self._delivery.has_news()  # perhaps the session before had more
            progress.announce(f"{self._name} delivers receipts")
            await self._delivery.run_once(queue)
            await queue.connection.execute(*renaming(session), prepare=False)
            while not self._stop:
                progress.made()
                await self._delivery.run_once(queue, wait=IDLE_ROUND)

    async def _finish(self) -> None:
        """Write down how things stand, in a session of its own."""
        try:
            if not self._delivery.is_done:
                async with (
                    asyncio.timeout(GRACE + LONGEST_SAVE),
                    self._queue(sessions.receipts(self._name)) as queue,
                ):
                    await self._delivery.finish(queue, GRACE)
        except (Unavailable, psycopg.Error, TimeoutError) as error:
            logger.warning("can't write down how attempts ended: %s", in_one_line(error))
        if not self._delivery.is_done:
            logger.warning("what came of the last attempts was not saved, so they are made again")
        self._delivery.outcomes.tell(last=True)

    def _look(self) -> None:
        with self._session(f"{self._name} (looking)"):
            pass

    @contextmanager
    def _session(self, name: str) -> Iterator[psycopg.Connection]:
        """One with a database that has our schema, may be written to, and knows this worker."""
        with database.connect(self._config.postgres_url, name, **SESSION) as connection:
            revisions.require_schema(connection, self._config.cell)
            database.require_writable(connection)
            connection.execute(MAKE_WORKER, {"worker": self._name})
            yield connection

    @asynccontextmanager
    async def _queue(self, session: str) -> AsyncIterator[Queue]:
        config = self._config
        async with await database.connect_async(config.postgres_url, session, **SESSION) as own:
            await serving.hold_async(own, APPLICATION, LOG)
            yield Queue(own, self._name, config.receipt_attempts, config.lease)

    def _await(self, work: Coroutine[object, object, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()
