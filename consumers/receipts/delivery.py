"""The loop that works off the queue: save what has ended, take what is due, send it.

What is in flight outlives a session with Postgres. What was sent stays sent, and what came of it is
written down by the next session: so an outage on our side neither delivers a receipt twice nor
costs it an attempt. There are two exceptions: the outage lasts until the lease has run out, so that
others may take the receipt; or it swallows the answer to a TAKE, whose attempts then count.
"""

import asyncio
import math
import time
from contextlib import suppress

import psycopg

from consumers.receipts.breaker import Breaker
from consumers.receipts.courier import Courier
from consumers.receipts.queue import Attempt, Ended, Outcomes, Queue
from consumers.receipts.refusals import Refusals
from consumers.receipts.upkeep import Upkeep
from consumers.receipts.verdict import Kind, Verdict, one_line
from unified_log.words import count

# Seconds.
LOOK_BACK_EVERY, LOOK_AT_ALL_EVERY = 1.0, 60.0  # see TAKE
HELD_PAUSE = 0.05  # of a worker that ends, until it tries again to save what is held
SOON = 0.002  # until the first look for what the streamer has sent and is about to commit

RARELY = 20  # the next look back, or at all, waits for this many times what the last one took

STOPPED = Verdict(Kind.STOPPED, "the worker was stopped")
TOO_LATE = Verdict(Kind.STOPPED, "the lease ran out before anything was sent")


class Delivery:
    """What one worker has in flight, over all of its sessions. For one event loop."""

    def __init__(
        self, courier: Courier, concurrency: int, timeout: float, sweep_after: float
    ) -> None:
        self.breaker = Breaker(concurrency)
        self.outcomes = Outcomes()
        self._refusals = Refusals()
        self.in_flight: dict[Attempt, asyncio.Task[None]] = {}
        self._courier = courier
        self._upkeep = Upkeep(sweep_after)
        self._timeout = timeout  # of an attempt, in seconds
        self._ended: list[Ended] = []
        self._held: list[Ended] = []  # whose rows somebody holds
        self._woken = asyncio.Event()
        # On the monotonic clock: when something may be due, as far as is known; when to look back,
        # or at the whole queue. Once all that was due is taken, the next look is in `_pause` s.
        self._look_at = self._look_back_at = self._look_at_all_at = 0.0
        self._pause = math.inf

    def has_news(self, settled: bool = True) -> None:
        """The inbox has new rides. Unless `settled`, the streamer is about to commit them."""
        self._look_at = 0.0
        self._pause = math.inf if settled else SOON
        self._woken.set()

    @property
    def is_done(self) -> bool:
        """Whether nothing is in flight, and all that has ended is written down."""
        return not (self.in_flight or self._ended or self._held)

    async def run_once(self, queue: Queue, *, wait: float = 0) -> None:
        """Write down what has ended, take what is due, and begin to send it.

        Then waits up to `wait` seconds for something to do. Raises psycopg.Error or Unavailable;
        what is in flight goes on.
        """
        self._woken.clear()
        await self._save(queue)
        await self._take(queue)
        await self._upkeep.run(queue)
        self.outcomes.tell()
        if not self._ended:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(wait, self._nothing_for)):
                    await self._woken.wait()

    async def finish(self, queue: Queue, seconds: float) -> None:
        """Write down what ends in so many seconds, and that the rest was stopped.

        Else a receipt that two workers, one after the other, had in flight when they were stopped
        would be quarantined. Raises psycopg.Error.
        """
        deadline = time.monotonic() + seconds
        while not self.is_done and (left := deadline - time.monotonic()) > 0:
            if tasks := self.in_flight.values():
                await asyncio.wait(tasks, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            elif self._held:
                await asyncio.sleep(HELD_PAUSE)
            await self._save(queue)
        for attempt, task in self.in_flight.items():
            task.cancel()
            self._ended.append((attempt, STOPPED))
        self.in_flight.clear()
        await self._save(queue)

    async def _save(self, queue: Queue) -> None:
        if not (ended := self._held + self._ended):  # the later ones last, for `save`
            return
        self._ended, self._held = [], []
        try:
            again, self._held = await queue.save(ended, self.outcomes)
        except (psycopg.Error, asyncio.CancelledError):
            self._ended = ended + self._ended  # the next session writes it down
            raise
        if any(attempt.is_quarantined for attempt, _ in ended):
            again = 0  # another one may be taken now
        self._look_at = min(self._look_at, time.monotonic() + again)

    async def _take(self, queue: Queue) -> None:
        """Take as many as may be sent now, if there may be any."""
        now, room = time.monotonic(), self._room
        looks_at_all = now >= self._look_at_all_at
        looks_back = looks_at_all or now >= self._look_back_at
        if room <= 0 or (now < self._look_at and not looks_back):
            return
        self._look_at = math.inf
        try:
            attempts = await queue.take(  # meanwhile there may be news
                room,
                quarantined=not any(attempt.is_quarantined for attempt in self.in_flight),
                look_back=looks_back,
                look_at_all=looks_at_all,
            )
        finally:  # also if it failed: most of the time is for looks at what is new
            ended = time.monotonic()
            pause = RARELY * (ended - now)
            if looks_back:
                self._look_back_at = ended + max(LOOK_BACK_EVERY, pause)
            if looks_at_all:
                self._look_at_all_at = ended + max(LOOK_AT_ALL_EVERY, pause)
        for attempt in attempts:
            if attempt.is_exhausted:
                self._ended.append((attempt, give_up(attempt)))
            else:
                self.in_flight[attempt] = asyncio.create_task(self._make(attempt))
        if len(attempts) == room:
            self._look_at = 0.0
        else:
            self._look_at = min(self._look_at, time.monotonic() + self._pause)
            self._pause *= 2

    @property
    def _room(self) -> int:
        """How many attempts may be begun now; below 0 while too many are in flight."""
        return self.breaker.limit - len(self.in_flight)

    @property
    def _nothing_for(self) -> float:
        """Seconds in which there is nothing to do, unless something ends or is new."""
        now = time.monotonic()
        due = [self._upkeep.due]
        if self._room > 0:
            due += [self._look_at, self._look_back_at, self._look_at_all_at]
        elif not self.in_flight:
            due.append(now + self.breaker.pause)
        return max(0.0, min(due) - now)

    async def _make(self, attempt: Attempt) -> None:
        """Make an attempt, within what is left of its lease; its end is to be written down."""
        taken = self._refusals.taken
        seconds = min(self._timeout, attempt.deadline - time.monotonic())
        verdict = TOO_LATE
        if seconds > 0:
            try:
                answered = await self._courier.deliver(attempt.receipt, seconds)
            except Exception as error:
                answered = Verdict(Kind.RETRY, one_line(f"{type(error).__name__}: {error}"))
            verdict = self._refusals.decide(attempt, answered, taken)
            # Whoever takes some receipts, and declines others, does not fail.
            fails = verdict.kind is Kind.AWAY and self._refusals.is_quiet
            if fails or answered.kind is not Kind.DECLINED:
                self.breaker.note(answered)
        del self.in_flight[attempt]
        self._ended.append((attempt, verdict))
        self._woken.set()


def give_up(attempt: Attempt) -> Verdict:
    """Why a receipt is dead that has had all of its attempts.

    If the end of the last one is known, its reason stands. (RECEIPT_ATTEMPTS was lowered after it.)
    """
    if attempt.reason and not attempt.unfinished:
        return Verdict(Kind.REFUSED, attempt.reason)
    lost = f", the last {attempt.unfinished} without a known end" if attempt.unfinished else ""
    return Verdict(Kind.REFUSED, f"{count(attempt.number, 'attempt')}{lost}")
