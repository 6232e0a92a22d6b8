"""A worker: delivers the receipts of what the group gives it, one thread, round after round.

A round writes down how attempts ended, keeps alive what is in hand, takes over what others left
behind, reads on as far as there is room, and starts attempts. Each step is about all rides at once,
so a round costs a few statements, however many receipts it is about.
"""

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

import psycopg
import redis

from consumers.receipts.attempts import Attempts, Known
from consumers.receipts.deliveries import NO_TIME, Deliveries
from consumers.receipts.group import Group, GroupGone
from consumers.receipts.hand import Errand, Hand
from consumers.receipts.intake import Intake
from consumers.receipts.outcomes import UNWRITTEN_DELAY, save
from consumers.receipts.round import Round, Step
from consumers.receipts.verdict import Kind, Verdict
from rocket_rides.faults import reached
from rocket_rides.groups import name_of
from rocket_rides.log import Log

# Seconds.
BUSY_POLL = 0.02  # between looks for new entries while attempts are under way
LEASED_POLL = 0.5


class Patience(NamedTuple):
    """What one worker is told: attempts for a receipt, and times in seconds."""

    attempts: int
    timeout: float
    claim_after: float
    sweep_after: float


class Worker:
    """One session of the member `name`, on a connection and a log of its own."""

    def __init__(
        self,
        connection: psycopg.Connection,
        log: Log,
        name: str,
        deliveries: Deliveries,
        patience: Patience,
    ) -> None:
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        self._connection = connection
        self._deliveries = deliveries
        self._patience = patience
        self._group = Group(log, name_of(connection), name)
        self._attempts = Attempts(connection, name, patience.attempts, patience.timeout)
        self._hand = Hand()
        self.intake = Intake(
            connection,
            self._group,
            self._hand,
            deliveries,
            claim_after=patience.claim_after,
            sweep_after=patience.sweep_after,
        )

    def join(self) -> bool:
        """Become a member, unless another process of this name is one; never waits."""
        return self.intake.membership.join()

    @property
    def in_hand(self) -> int:
        """How many rides this worker is to deliver the receipts of."""
        return len(self._hand)

    def run_once(self, *, wait: float = 0) -> Round:
        """Do what can be done now; waits up to `wait` seconds for something to do.

        Raises psycopg.Error, redis.RedisError or StateLost. What is under way goes on.
        """
        done = Round()
        wait = min(wait, self.intake.keep_every)
        try:
            self._save(done)
            self.intake.keep(done)
            self.intake.take_over(done)
            self.intake.take_up_lost(done)
            self.intake.read(done, wait)
            self._attempt(done)
        except GroupGone:
            self.intake.give_up()
            done.made_group = self._group.make()
        self._await(wait)
        return done

    def finish(self, seconds: float) -> Round:
        """Write down what is under way, as far as it ends in so many seconds; leave the group.

        Where Redis can't be reached, the others acknowledge and claim. Raises psycopg.Error.
        """
        done = Round()
        deadline = time.monotonic() + seconds
        while self._deliveries.under_way and (left := deadline - time.monotonic()) > 0:
            self._deliveries.wait(left)
            with suppress(redis.RedisError):
                self._save(done)
        with suppress(redis.RedisError):
            self._save(done)
            self._group.remove_member(self._group.member)
        return done

    def _save(self, done: Round) -> None:
        """Outcomes first, then the acknowledgement."""
        ended = self._deliveries.unsaved
        if not ended:
            return
        reached(Step.BEFORE_SAVING)
        saved = save(self._connection, self._group.member, ended.values(), self._patience.attempts)
        if self._deliveries.alone in ended:
            self._deliveries.alone = None
        ended.clear()
        reached(Step.BEFORE_ACKNOWLEDGING)
        done.delivered += saved.delivered
        done.dead |= saved.dead
        done.unwritten |= saved.unwritten
        done.again += len(saved.again)
        for ride_id, seconds in saved.again.items():
            self._hand.postpone(ride_id, seconds)
        for ride_id in saved.unwritten:
            self._hand.postpone(ride_id, UNWRITTEN_DELAY)
        for ride_id in saved.other:  # the next look at its row says what is to be done
            self._hand.postpone(ride_id, 0)
        self._settle([*saved.delivered, *saved.dead])

    def _attempt(self, done: Round) -> None:
        """Write an attempt for each ride that it is the turn of, and make it."""
        room = self._deliveries.room
        may_suspect = self._deliveries.alone is None
        # A place is kept for a suspect: it must not wait for the end of a backlog.
        kept = int(may_suspect and room > 1 and self._hand.has_suspects)
        errands = self._hand.next(room - kept, fresh_first=self._deliveries.breaker.is_open)
        alone: list[int] = []
        if may_suspect and len(errands) < room and (suspect := self._hand.next_suspect()):
            errands.append(suspect)
            alone.append(suspect.ride_id)
        if not errands:
            return
        known = self._attempts.begin(
            [errand.ride_id for errand in errands],
            [errand.ride_id for errand in errands if errand.taken_over],
            alone,
            [errand.ride_id for errand in errands if errand.lost],
        )
        reached(Step.BEFORE_SENDING)
        self._settle(
            errand.ride_id
            for errand in errands
            if not self._start(errand, known.get(errand.ride_id), errand.ride_id in alone)
        )

    def _start(self, errand: Errand, known: Known | None, alone: bool) -> bool:
        """Make the attempt if it was begun; False when there is nothing to do for this ride."""
        if known is None or known.state == "settled":
            return False
        match known.state:
            case "begun" if known.created_at is None:
                self._deliveries.end(known.receipt, NO_TIME, known.attempts + 1, known.forgiven)
            case "begun":
                self._deliveries.start(known.receipt, known.attempts + 1, known.forgiven)
                if alone:
                    self._deliveries.alone = errand.ride_id
            case "exhausted":
                why = f"{known.attempts} attempts, the last {known.unfinished} without a known end"
                verdict = Verdict(Kind.REFUSED, why)
                self._deliveries.end(known.receipt, verdict, known.attempts, known.forgiven)
            case "suspect":
                self._hand.suspect(errand.ride_id, known.unfinished)
            case _:  # where another's attempt is under way, its outcome may come at any moment
                wait = 0 if known.unfinished else known.wait or 0
                self._hand.postpone(errand.ride_id, max(wait, LEASED_POLL))
        return True

    def _settle(self, rides: Iterable[int]) -> None:
        self._group.ack(self._hand.settle(rides))

    def _await(self, wait: float) -> None:
        """Wait for attempts to end, while nothing else can be done."""
        if self._deliveries.unsaved:
            return
        if self._deliveries.under_way:
            can_read = self._deliveries.room > 0 and self.intake.room > 0
            self._deliveries.wait(min(wait, BUSY_POLL if can_read else wait))
        elif self._deliveries.room <= 0 or self.intake.room <= 0:  # so nothing was waited for yet
            due = max(self._deliveries.breaker.pause, self._hand.next_due_in())
            self._deliveries.wait(min(wait, due))
