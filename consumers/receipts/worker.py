"""A worker: delivers the receipts of what the group gives it, one thread, round after round.

A round keeps alive what is in hand, writes down how attempts ended, takes over what others left
behind, reads on as far as there is room, and starts attempts. Each step is about all rides at once,
so a round costs a few statements, however many receipts it is about.
"""

import random
import time
from collections.abc import Iterable
from typing import NamedTuple

import psycopg

from consumers.receipts.arrivals import Arrivals
from consumers.receipts.attempts import Attempts, Known
from consumers.receipts.deliveries import NO_TIME, Deliveries
from consumers.receipts.hand import Errand, Hand
from consumers.receipts.membership import Membership
from consumers.receipts.outcomes import save
from consumers.receipts.round import Round, Step
from consumers.receipts.sweep import Sweep
from consumers.receipts.verdict import Kind, Verdict
from rocket_rides.faults import reached
from rocket_rides.groups import Group, GroupGone, name_of
from rocket_rides.log import Entry, Log
from rocket_rides.waiting import delays

# Seconds.
LOOK_EVERY = 1.0  # at what the other members left behind
BUSY_POLL = 0.02  # between looks for new entries while attempts are under way
HELD_POLL, HELD_POLL_LONGEST = 0.001, 0.5  # the streamer commits right after it has sent
LEASED_POLL = 0.5
# Entries and rides taken over at a time; there are other workers.
SHARE = 500
# Of the time after which something has to have happened.
HEARTBEATS, SWEEPS = 4, 3


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
        self._membership = Membership(connection, self._group, patience.claim_after)
        self._arrivals = Arrivals(connection, self._group.name)
        self._attempts = Attempts(connection, patience.attempts, patience.timeout)
        self._sweep = Sweep(connection, self._group, self._arrivals)
        self._hand = Hand()
        self._held: list[Entry] = []  # the streamer has not committed them yet
        self._held_pauses = delays(HELD_POLL, HELD_POLL_LONGEST)
        self._alone: int | None = None  # the suspected ride that is under way
        now = time.monotonic()
        self._keep_at = now + patience.claim_after / HEARTBEATS
        self._look_at = now
        # Not all workers at once.
        self._sweep_at = now + patience.sweep_after / SWEEPS * random.random()

    def join(self) -> bool:
        """Become a member, unless another process of this name is one; never waits."""
        return self._membership.join()

    @property
    def in_hand(self) -> int:
        """How many rides this worker is to deliver the receipts of."""
        return len(self._hand)

    def run_once(self, *, wait: float = 0) -> Round:
        """Do what can be done now; waits up to `wait` seconds for something to do.

        Raises psycopg.Error, redis.RedisError or StateLost. What is under way goes on.
        """
        done = Round()
        try:
            self._keep(done)
            self._save(done)
            self._take_over(done)
            self._take_up_lost(done)
            self._read(done, wait)
            self._attempt(done)
        except GroupGone:
            # What was pending is the sweep's; what was not read is read again from the start.
            self._hand.lose(list(self._hand.entries), self._deliveries)
            self._held = []
            done.made_group = self._group.make()
        self._await(wait)
        return done

    def finish(self, seconds: float) -> Round:
        """Write down what is under way, as far as it ends in so many seconds; leave the group."""
        done = Round()
        deadline = time.monotonic() + seconds
        while self._deliveries.under_way and (left := deadline - time.monotonic()) > 0:
            self._deliveries.wait(left)
            self._save(done)
        self._save(done)
        self._group.remove_member(self._group.member)
        return done

    def _keep(self, done: Round) -> None:
        """The heartbeat: what is in hand stays ours, unless others have claimed it already."""
        now = time.monotonic()
        if now < self._keep_at:
            return
        entries = [*self._hand.entries, *(entry.redis_id for entry in self._held)]
        kept: set[str] = set()
        for start in range(0, len(entries), SHARE):
            kept.update(self._group.keep(entries[start : start + SHARE]))
        lost = [entry for entry in entries if entry not in kept]
        done.given_up += self._hand.lose(lost, self._deliveries)
        self._held = [entry for entry in self._held if entry.redis_id in kept]
        self._keep_at = now + self._patience.claim_after / HEARTBEATS

    def _save(self, done: Round) -> None:
        """Outcomes first, then the acknowledgement."""
        ended = self._deliveries.unsaved
        if not ended:
            return
        reached(Step.BEFORE_SAVING)
        saved = save(self._connection, ended.values(), self._patience.attempts)
        if self._alone in ended:
            self._alone = None
        ended.clear()
        reached(Step.BEFORE_ACKNOWLEDGING)
        done.delivered += saved.delivered
        done.dead |= saved.dead
        done.again += len(saved.again)
        for ride_id, seconds in saved.again.items():
            self._hand.postpone(ride_id, seconds)
        self._settle([*saved.delivered, *saved.dead, *saved.other])

    def _take_over(self, done: Round) -> None:
        """What the others left behind, and what somebody wants sent again."""
        now = time.monotonic()
        if now < self._look_at:
            return
        room = self._room_to_take_up
        in_hand = {*self._hand.entries, *(entry.redis_id for entry in self._held)}
        claimed = self._membership.claim(room, in_hand)
        self._sort(claimed, done, taken_over=True)
        done.claimed += len(claimed)
        for ride_id in self._sweep.marked(room):
            self._take_up(ride_id)
        if not claimed:  # else there may be more
            self._look_at = now + min(LOOK_EVERY, self._patience.claim_after / HEARTBEATS)

    def _take_up_lost(self, done: Round) -> None:
        now = time.monotonic()
        room = self._room_to_take_up
        if now < self._sweep_at or not room:
            return
        lost = [ride_id for ride_id in self._sweep.lost() or [] if ride_id not in self._hand]
        for ride_id in lost[:room]:
            if self._take_up(ride_id):
                done.swept.append(ride_id)
        if len(lost) <= room:  # else go on as soon as there is room
            self._sweep_at = now + self._patience.sweep_after / SWEEPS

    @property
    def _room_to_take_up(self) -> int:
        """How many rides may be taken over at once: others may deliver them, too."""
        if self._deliveries.breaker.is_open:
            return 0
        return max(0, min(SHARE - self._hand.fresh, self._hand.room))

    def _take_up(self, ride_id: int) -> bool:
        if ride_id in self._hand or ride_id in self._deliveries:
            return False
        self._hand.take(ride_id, None)
        return True

    def _read(self, done: Round, wait: float) -> None:
        """Read on as far as there is room to deliver at once, and look at what is held again."""
        room = min(
            self._deliveries.room - self._hand.fresh, self._hand.room - len(self._held), SHARE
        )
        entries = self._held
        if room > 0:
            idle = not (self._deliveries.under_way or self._deliveries.unsaved)
            pause = min(wait, self._hand.next_due_in())
            if self._held:
                pause = min(pause, next(self._held_pauses))
            else:
                self._held_pauses = delays(HELD_POLL, HELD_POLL_LONGEST)
            entries = self._held + self._group.read(room, pause if idle else 0)
        if entries:
            reached(Step.AFTER_READING)
            self._held = []
            self._sort(entries, done)

    def _sort(self, entries: list[Entry], done: Round, *, taken_over: bool = False) -> None:
        if not entries:
            return
        arrived = self._arrivals.sort_out(entries)
        self._held += arrived.held
        for entry, ride_id in arrived.news:
            under_way = ride_id in self._deliveries
            self._hand.take(ride_id, entry, taken_over=taken_over, under_way=under_way)
        done.set_aside += arrived.dead
        done.unbelieved.foreign += arrived.unbelieved.foreign
        done.unbelieved.uncommitted += arrived.unbelieved.uncommitted
        self._group.ack(arrived.done)

    def _attempt(self, done: Round) -> None:
        """Write an attempt for each ride that it is the turn of, and make it."""
        room = self._deliveries.room
        errands = self._hand.next(room, fresh_first=self._deliveries.breaker.is_open)
        alone: list[int] = []
        if len(errands) < room and self._alone is None and (suspect := self._hand.next_suspect()):
            errands.append(suspect)
            alone.append(suspect.ride_id)
        if not errands:
            return
        known = self._attempts.begin(
            [errand.ride_id for errand in errands],
            [errand.ride_id for errand in errands if errand.taken_over],
            alone,
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
                self._deliveries.end(known.receipt, NO_TIME, known.attempts + 1)
            case "begun":
                self._deliveries.start(known.receipt, known.attempts + 1)
                if alone:
                    self._alone = errand.ride_id
            case "exhausted":
                why = f"each of {known.attempts} attempts was the last thing its worker did"
                self._deliveries.end(known.receipt, Verdict(Kind.REFUSED, why), known.attempts)
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
            can_read = self._deliveries.room > 0 and self._hand.room > 0
            self._deliveries.wait(min(wait, BUSY_POLL if can_read else wait))
        elif self._deliveries.room <= 0 or self._hand.room <= 0:  # so nothing was waited for yet
            due = max(self._deliveries.breaker.pause, self._hand.next_due_in())
            self._deliveries.wait(min(wait, due))
