"""The queue of receipts, as a worker uses it: TAKE and SAVE, with values and answers of Python."""

import logging
import math
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import LiteralString, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.rows import TupleRow

from consumers.receipts import statements
from consumers.receipts.receipt import Receipt
from consumers.receipts.verdict import Kind, Verdict
from unified_log.errors import in_one_line
from unified_log.tracing import Trace, fields, parse

logger = logging.getLogger("consumer")

# Seconds before the second attempt; three times as long before each further one, up to the longest.
# So the ten attempts of RECEIPT_ATTEMPTS take a quarter of an hour: nothing that was only delayed
# for minutes is dead.
FIRST_DELAY, FACTOR, LONGEST_DELAY = 1.0, 3.0, 300.0
# Nobody took the request; when to try again is the same question for all receipts: see `breaker`.
AWAY_DELAY = 0.5
TELL_EVERY = 1.0  # seconds
ALL = "-infinity"  # where a look at the whole queue begins


class Attempt(NamedTuple):
    """An attempt that is written down, and may be made until the `deadline`.

    The deadline is on the monotonic clock, and counts from before the lease was asked for: so
    nothing is sent once another worker may take the receipt. `number` counts the attempts since the
    last replay, this one included, without those that are excused. Of those before it, the last
    `unfinished` have no known end. Where `is_exhausted`, no attempt is left, and it is not made.
    `reason` is why the last one whose end is known failed.
    """

    receipt: Receipt
    lease: UUID
    deadline: float
    number: int
    unfinished: int = 0
    is_exhausted: bool = False
    reason: str | None = None

    @property
    def is_quarantined(self) -> bool:
        return self.unfinished >= 2


Ended = tuple[Attempt, Verdict]


@dataclass
class Outcomes:
    """What came of attempts: a line for each second tells it, not one for each receipt."""

    delivered: list[int] = field(default_factory=list)
    again: list[int] = field(default_factory=list)  # another attempt follows
    dead: dict[int, str] = field(default_factory=dict)  # and why
    traces: dict[int, Trace] = field(default_factory=dict)  # of any of these, by ride
    due: float = 0.0  # the next line, on the monotonic clock

    def tell(self, *, last: bool = False) -> None:
        """Log what there is and begin anew, once it is due; at once if it is the `last` line."""
        if not last and time.monotonic() < self.due:
            return
        told = {"delivered": len(self.delivered), "to be sent again later": len(self.again)}
        if line := ", ".join(f"{count} {what}" for what, count in told.items() if count):
            logger.info("receipts: %s", line, extra=fields(self.traces.values()))
        if self.dead:
            ride_id, why = next(iter(self.dead.items()))
            line = f"{len(self.dead)} given up, first that of ride {ride_id}: {why}"
            extra = {"ride_id": ride_id, **fields([self.traces.get(ride_id)])}
            logger.warning("receipts: %s", line, extra=extra)
        self.delivered, self.again, self.dead, self.traces = [], [], {}, {}
        self.due = time.monotonic() + TELL_EVERY


@dataclass
class Queue:
    """One session's view of it. Each method is a statement, and raises psycopg.Error."""

    connection: psycopg.AsyncConnection
    worker: str
    most: int  # attempts
    lease: float  # seconds
    _begin_at: datetime | None = None

    async def do(self, statement: LiteralString, **values: object) -> list[TupleRow]:
        """Carry out one of the `statements`; returns its rows."""
        values |= {"worker": self.worker, "most": self.most}
        cursor = await self.connection.execute(statement, values)
        return await cursor.fetchall()

    async def take(
        self,
        room: int,
        *,
        quarantined: bool = False,
        look_back: bool = False,
        look_at_all: bool = False,
    ) -> list[Attempt]:
        """Lease up to `room` receipts that are due, the oldest first.

        Of those that fell due since the last look; if `look_back`, since something can be due; if
        `look_at_all`, of the whole queue. One of them may be `quarantined`: it has lost its workers
        before.
        """
        deadline = time.monotonic() + self.lease
        lease = uuid4()
        rows = await self.do(
            statements.TAKE,
            room=room,
            quarantined=int(quarantined),
            begin_at=ALL if look_at_all else None if look_back else self._begin_at,
            lease=lease,
            seconds=self.lease,
        )
        attempts = []
        for ride, distance, at, id_, parent, state, *of_attempt, due in rows:
            receipt = Receipt(ride, distance, at, id_, parse(parent, state))
            attempt = Attempt(receipt, lease, deadline, *of_attempt)
            attempts.append(attempt)
            if not attempt.is_quarantined:
                self._begin_at = due
        return attempts

    async def save(self, ended: Sequence[Ended], outcomes: Outcomes) -> tuple[float, list[Ended]]:
        """Write down how these attempts ended, committed on return, and in `outcomes`.

        Where Postgres does not take one, the others are written one by one. Returns in how many
        seconds one of them may be due again, and those whose rows somebody holds, which are to be
        saved later. One that Postgres takes in no form is logged. Raises any other psycopg.Error.
        """
        try:
            return await self._save(ended, outcomes)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if len(ended) > 1:
                saved = [await self.save([end], outcomes) for end in ended]
                return min(again for again, _ in saved), [end for _, held in saved for end in held]
            [(attempt, verdict)] = ended
            if not verdict.reason.isascii():  # perhaps the database is not in Unicode
                reason = ascii(verdict.reason)[1:-1]
                return await self.save([(attempt, verdict._replace(reason=reason))], outcomes)
            ride_id = attempt.receipt.ride_id
            line = f"what came of ride {ride_id}'s receipt can't be written: {in_one_line(error)}"
            extra = {"ride_id": ride_id, **fields([attempt.receipt.trace])}
            logger.warning("%s", line, extra=extra)
            return math.inf, []

    async def _save(self, ended: Sequence[Ended], outcomes: Outcomes) -> tuple[float, list[Ended]]:
        # Of two ends of one ride, DELIVERED counts, else the later one.
        last = sorted(ended, key=lambda end: end[1].kind is Kind.DELIVERED)
        of = {attempt.receipt.ride_id: (attempt, verdict) for attempt, verdict in last}
        delays = [delay(attempt.number, verdict) for attempt, verdict in of.values()]
        rows = await self.do(
            statements.SAVE,
            rides=list(of),
            ids=[attempt.receipt.webhook_id for attempt, _ in of.values()],
            leases=[attempt.lease for attempt, _ in of.values()],
            kinds=[verdict.kind.value for _, verdict in of.values()],
            reasons=[verdict.reason for _, verdict in of.values()],
            delays=delays,
        )
        held = []
        for ride_id, outcome, is_held in rows:
            attempt, verdict = of[ride_id]
            if is_held:
                held.append(of[ride_id])
                continue
            if attempt.receipt.trace:
                outcomes.traces[ride_id] = attempt.receipt.trace
            if outcome == "delivered":
                outcomes.delivered.append(ride_id)
            elif outcome == "dead":
                outcomes.dead[ride_id] = verdict.reason
            else:
                outcomes.again.append(ride_id)
        return min(delays), held


def delay(number: int, verdict: Verdict) -> float:
    """Seconds between the `number`-th attempt, which ended so, and the next, should there be one.

    Jittered, so that not all that failed together meet again.
    """
    if verdict.kind in (Kind.AWAY, Kind.STOPPED):
        return max(verdict.retry_after, AWAY_DELAY)
    own = min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** (number - 1))
    return max(verdict.retry_after, own * random.uniform(0.5, 1))
