"""The queue of receipts, as a worker uses it: the statements, with values and answers of Python."""

import random
import time
from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString, NamedTuple
from uuid import UUID, uuid4

import psycopg
from psycopg.errors import LockNotAvailable
from psycopg.rows import TupleRow

from consumers.receipts import statements
from consumers.receipts.receipt import Receipt
from consumers.receipts.round import Round
from consumers.receipts.verdict import Kind, Verdict
from rocket_rides.errors import Unavailable, in_one_line

# Seconds before the second attempt; three times as long before each further one, up to the longest.
# The ten attempts of RECEIPT_ATTEMPTS so take a quarter of an hour: nothing that was only delayed
# for minutes is dead.
FIRST_DELAY, FACTOR, LONGEST_DELAY = 1.0, 3.0, 300.0
# Nobody took the request; when to try again is the same question for all receipts: see `breaker`.
AWAY_DELAY = 0.5
NO_STATE = "streamer_state or receipts_state is empty; the streamer says how to restore its own"
PAGE = 10_000  # rides that a sweep looks at at once
ALL = "-infinity"  # where a look at the queue begins


class Attempt(NamedTuple):
    """An attempt that is written down, and may be made until the `deadline`.

    That is on the monotonic clock, and counts from before the lease was asked for: so nothing is
    sent once another worker may take the receipt. It is the `number`-th since the last replay, but
    for those that don't count.
    """

    receipt: Receipt
    lease: UUID
    number: int
    deadline: float
    is_quarantined: bool


class Ended(NamedTuple):
    """An attempt that has ended."""

    attempt: Attempt
    verdict: Verdict


class Swept(NamedTuple):
    """What a sweep found."""

    last_sent: int
    goes_on: bool  # there is another page
    rides: list[int]  # that the log has not brought
    is_behind: bool  # `complete_to` may be moved, and nobody holds it


class Queue:
    """One session's view of it. Each method is a statement, and raises psycopg.Error."""

    def __init__(
        self, connection: psycopg.AsyncConnection, worker: str, most: int, lease: float
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._most = most
        self._lease = lease
        self._begin_at: datetime | str = ALL

    async def take(self, room: int, *, quarantined: bool = False) -> list[Attempt]:
        """Lease up to `room` receipts that are due: the oldest, as far as this session knows.

        One of them may be `quarantined`: it has lost its workers before.
        """
        deadline = time.monotonic() + self._lease
        lease = uuid4()
        rows = await self._rows(
            statements.TAKE,
            room=room,
            quarantined=int(quarantined),
            begin_at=self._begin_at,
            lease=lease,
            seconds=self._lease,
        )
        attempts = []
        for *ride, number, is_quarantined, due_at in rows:
            attempts.append(Attempt(Receipt(*ride), lease, number, deadline, is_quarantined))
            if not is_quarantined:
                self._begin_at = due_at
        return attempts

    def look_at_all(self) -> None:
        """Have the next look begin at the first row: some that are due may have been passed by."""
        self._begin_at = ALL

    async def save(self, ended: Sequence[Ended], done: Round) -> None:
        """Write down how these attempts ended, committed on return; `done` says what that came to.

        Where Postgres does not take one, or somebody holds its row, the others are written one by
        one. Raises psycopg.Error if it takes nothing at all.
        """
        try:
            await self._save(ended, done)
        except (psycopg.DataError, psycopg.IntegrityError, LockNotAvailable) as error:
            if len(ended) == 1:
                done.unwritten[ended[0].attempt.receipt.ride_id] = in_one_line(error)
                return
            for end in ended:
                await self.save([end], done)

    async def _save(self, ended: Sequence[Ended], done: Round) -> None:
        # Of two ends of one ride, that it was delivered.
        last = sorted(ended, key=lambda end: end.verdict.kind is Kind.DELIVERED)
        of = {end.attempt.receipt.ride_id: end for end in last}
        delays = {ride_id: delay(end.attempt.number, end.verdict) for ride_id, end in of.items()}
        rows = await self._rows(
            statements.SAVE,
            rides=list(of),
            ids=[end.attempt.receipt.webhook_id for end in of.values()],
            leases=[end.attempt.lease for end in of.values()],
            kinds=[end.verdict.kind.value for end in of.values()],
            reasons=[end.verdict.reason for end in of.values()],
            delays=list(delays.values()),
        )
        for ride_id, outcome, replay in rows:
            if outcome == "delivered":
                done.delivered.append(ride_id)
            elif outcome == "dead" and not replay:
                done.dead[ride_id] = of[ride_id].verdict.reason
            else:
                done.again[ride_id] = delays[ride_id]

    async def bury(self) -> dict[int, str]:
        """Give up what has had all of its attempts; the rides, and why."""
        return dict(await self._rows(statements.BURY))

    async def sweep(self, upto: int) -> Swept:
        """Look whether the rides up to there are in the inbox, and put them there.

        Raises Unavailable when the streamer's state, or that of the receipts, is gone.
        """
        rows = await self._rows(statements.SWEEP, upto=upto)
        if not rows:
            raise Unavailable(NO_STATE)
        return Swept(*rows[0])

    async def complete(self) -> bool:
        """Move `complete_to` as far as every ride has an outcome; whether there may be more."""
        return await self._rows(statements.COMPLETE) == [(True,)]

    async def make_due(self) -> None:
        """Have nothing wait longer than anything of ours may."""
        await self._connection.execute(statements.MAKE_DUE)

    async def _rows(self, statement: LiteralString, **values: object) -> list[TupleRow]:
        values |= {"worker": self._worker, "most": self._most, "page": PAGE}
        return await (await self._connection.execute(statement, values)).fetchall()


def delay(number: int, verdict: Verdict) -> float:
    """Seconds between the `number`-th attempt, which ended so, and the next, should there be one.

    Jittered, so that not all that failed together meet again.
    """
    if verdict.kind in (Kind.AWAY, Kind.STOPPED):
        return AWAY_DELAY
    own = min(LONGEST_DELAY, FIRST_DELAY * FACTOR ** (number - 1))
    return max(verdict.retry_after or 0, own * random.uniform(0.5, 1))
