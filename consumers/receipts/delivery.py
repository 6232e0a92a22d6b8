"""The loop that works off the queue: save what has ended, take what is due, send it.

What is in flight outlives a session with Postgres. What was sent stays sent, and what came of it is
written down by the next session: so an outage on our side makes nobody get a receipt twice, and no
attempt count against a receipt; unless it lasts until the lease has run out, when others may take
the receipt.
"""

import asyncio
import math
import time
from collections.abc import Iterator
from contextlib import suppress

import psycopg

from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier
from consumers.receipts.queue import Attempt, Ended, Queue
from consumers.receipts.round import Round, Step
from consumers.receipts.upkeep import Upkeep
from consumers.receipts.verdict import Kind, Verdict, in_one_line
from rocket_rides.faults import reached
from rocket_rides.waiting import delays

# Seconds.
LOOK_AT_ALL_EVERY = 1.0  # see TAKE
SOON, LATER = 0.002, 0.5  # between looks for what the streamer has sent and is about to commit

STOPPED = Verdict(Kind.STOPPED, "the worker was stopped")
TOO_LATE = Verdict(Kind.STOPPED, "the lease ran out before anything was sent")


class Delivery:
    """What one worker has in flight, over all of its sessions. For one event loop."""

    def __init__(self, courier: Courier, concurrency: int, timeout: float) -> None:
        self.breaker = Breaker()
        self.in_flight: dict[Attempt, asyncio.Task[None]] = {}
        self._courier = courier
        self._concurrency = concurrency  # attempts at once
        self._timeout = timeout  # of one, in seconds
        self._ended: list[Ended] = []
        self._woken = asyncio.Event()
        # When something may be due, as far as is known; when all is looked at; on the monotonic
        # clock. The pauses are between looks for what the streamer is about to commit.
        self._look_at = self._look_at_all_at = 0.0
        self._pauses: Iterator[float] | None = None

    def has_news(self, settled: bool = True) -> None:
        """The inbox has new rides. Unless `settled`, the streamer is about to commit them."""
        self._look_at = 0.0
        self._pauses = None if settled else delays(SOON, LATER)
        self._woken.set()

    @property
    def is_done(self) -> bool:
        """Whether nothing is in flight, and all that has ended is written down."""
        return not (self.in_flight or self._ended)

    async def run_once(self, queue: Queue, upkeep: Upkeep, *, wait: float = 0) -> Round:
        """Write down what has ended, take what is due, and begin to send it.

        Then waits up to `wait` seconds for something to do. Raises psycopg.Error or StateLost; what
        is in flight goes on.
        """
        done = Round()
        self._woken.clear()
        await self._save(queue, done)
        await self._take(queue)
        await upkeep.run(queue, done)
        if not self._ended:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, self._nothing_for(upkeep))):
                    await self._woken.wait()
        return done

    async def finish(self, queue: Queue, seconds: float) -> Round:
        """Write down what ends in so many seconds, and that the rest was stopped.

        So two workers that are stopped, one after the other, leave nothing that looks as if it had
        ended them. Raises psycopg.Error.
        """
        done = Round()
        deadline = time.monotonic() + seconds
        while self.in_flight and (left := deadline - time.monotonic()) > 0:
            tasks = self.in_flight.values()
            await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            await self._save(queue, done)
        self._ended += [Ended(attempt, STOPPED) for attempt in self.cancel()]
        await self._save(queue, done)
        return done

    def cancel(self) -> list[Attempt]:
        """Give up all that is in flight, and return it. Its receiver may have it all the same."""
        cancelled = list(self.in_flight)
        for task in self.in_flight.values():
            task.cancel()
        self.in_flight.clear()
        return cancelled

    async def _save(self, queue: Queue, done: Round) -> None:
        if not self._ended:
            return
        reached(Step.BEFORE_SAVING)
        ended, self._ended = self._ended, []
        try:
            await queue.save(ended, done)
        except (psycopg.Error, asyncio.CancelledError):
            self._ended += ended  # the next session writes it down
            raise
        again = min(done.again.values(), default=math.inf)
        if any(end.attempt.is_quarantined for end in ended):
            again = 0  # another one may be taken now
        self._look_at = min(self._look_at, time.monotonic() + again)

    async def _take(self, queue: Queue) -> None:
        """Take as many as may be sent now, if there may be any."""
        now = time.monotonic()
        looks_at_all = now >= self._look_at_all_at
        if looks_at_all:
            queue.look_at_all()
            self._look_at = 0.0
        room = self._room
        if room and now >= self._look_at:
            pauses, self._pauses, self._look_at = self._pauses, None, math.inf
            attempts = await queue.take(  # meanwhile there may be news
                room, quarantined=not any(attempt.is_quarantined for attempt in self.in_flight)
            )
            self._send(attempts)
            if len(attempts) == room:
                self._look_at = 0.0
            elif pauses and not attempts:
                self._pauses = self._pauses or pauses
                self._look_at = min(self._look_at, time.monotonic() + next(pauses))
        if looks_at_all:  # however long it took, others come in between
            self._look_at_all_at = time.monotonic() + LOOK_AT_ALL_EVERY

    @property
    def _room(self) -> int:
        """How many attempts may be begun now."""
        free = self._concurrency - len(self.in_flight)
        return self.breaker.allows(len(self.in_flight), free)

    def _nothing_for(self, upkeep: Upkeep) -> float:
        """Seconds in which there is nothing to do, unless something ends or is new."""
        now = time.monotonic()
        due = [upkeep.due]
        if self._room:
            due += [self._look_at, self._look_at_all_at]
        elif self.breaker.is_open and not self.in_flight:
            due.append(now + self.breaker.pause)
        return max(0.0, min(due) - now)

    def _send(self, attempts: list[Attempt]) -> None:
        if attempts:
            reached(Step.BEFORE_SENDING)
        for attempt in attempts:
            self.in_flight[attempt] = asyncio.create_task(self._make(attempt))

    async def _make(self, attempt: Attempt) -> None:
        """Make an attempt, within what is left of its lease; its end is to be written down."""
        seconds = min(self._timeout, attempt.deadline - time.monotonic())
        verdict = TOO_LATE
        if seconds > 0:
            try:
                verdict = await self._courier.deliver(attempt.receipt, seconds)
            except Exception as error:
                verdict = Verdict(Kind.RETRY, in_one_line(f"{type(error).__name__}: {error}"))
            self.breaker.note(verdict)
        del self.in_flight[attempt]
        self._ended.append(Ended(attempt, verdict))
        self._woken.set()
