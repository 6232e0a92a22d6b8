"""Intake: what a worker is given by the group, and what it takes over from others.

All of it is in hand until it is settled, and a heartbeat keeps it. What others have claimed
meanwhile, because this worker hung, is given up and not taken back.
"""

import random
import time

import psycopg

from consumers.receipts.arrivals import Arrivals
from consumers.receipts.deliveries import Deliveries
from consumers.receipts.group import Group
from consumers.receipts.hand import Hand
from consumers.receipts.membership import Membership
from consumers.receipts.round import Round, Step
from consumers.receipts.sweep import Sweep
from rocket_rides.faults import reached
from rocket_rides.log import Entry
from rocket_rides.waiting import delays

LOOK_EVERY = 1.0  # seconds; at what the other members left behind
# While suspects wait for their turns: one costs less than taking over more, and looking at those.
LOOK_WITH_SUSPECTS = 0.1
HELD_POLL, HELD_POLL_LONGEST = 0.001, 0.5  # seconds; the streamer commits right after it has sent
# Seconds, after a pause of at least as long. By then the streamer has committed what it sent, so
# one look is enough; and the totals, which somebody may wait for, have had the processors.
GIVE_WAY = 0.005
SHARE = 500  # entries or rides taken over at a time: there are other workers
# How often in the time after which it has to have happened.
HEARTBEATS, SWEEPS = 4, 3


class Intake:
    """What one session of a worker takes into its `hand`."""

    def __init__(
        self,
        connection: psycopg.Connection,
        group: Group,
        hand: Hand,
        deliveries: Deliveries,
        *,
        claim_after: float,
        sweep_after: float,
    ) -> None:
        self._group = group
        self._hand = hand
        self._deliveries = deliveries
        self._arrivals = Arrivals(connection, group.name)
        self.membership = Membership(connection, group, claim_after)
        self.sweep = Sweep(connection, group, self._arrivals)
        self._held: list[Entry] = []  # the streamer has not committed them yet
        self._held_pauses = delays(HELD_POLL, HELD_POLL_LONGEST)
        self._passing = False  # over entries that are done with, as after a group is made anew
        self.keep_every, self._sweep_every = claim_after / HEARTBEATS, sweep_after / SWEEPS
        self._look_every = min(LOOK_EVERY, self.keep_every)
        now = time.monotonic()
        self._keep_at, self._look_at = now + self.keep_every, now
        self._sweep_at = now + self._sweep_every * random.random()  # not all workers at once

    @property
    def room(self) -> int:
        """How many more entries this worker may hold."""
        return self._hand.room - len(self._held)

    def give_up(self) -> None:
        """The group is gone, and with it what was pending: those rides are the sweep's."""
        self._hand.lose(list(self._hand.entries), self._deliveries)
        self._held = []

    def keep(self, done: Round) -> None:
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
        self._keep_at = now + self.keep_every

    def take_over(self, done: Round) -> None:
        """What the others left behind, and what somebody wants sent again."""
        now = time.monotonic()
        if now < self._look_at:
            return
        room = self._room_to_take_up
        in_hand = {*self._hand.entries, *(entry.redis_id for entry in self._held)}
        claimed = self.membership.claim(room, in_hand)
        self._sort(claimed, done, taken_over=True)
        done.claimed += len(claimed)
        for ride_id in self.sweep.marked(room):
            self._take_up(ride_id)
        if not claimed:  # else there may be more
            self._look_at = now + self._look_every
        elif self._hand.has_suspects:
            self._look_at = now + min(LOOK_WITH_SUSPECTS, self._look_every)

    def take_up_lost(self, done: Round) -> None:
        now = time.monotonic()
        room = self._room_to_take_up
        if now < self._sweep_at or not room:
            return
        lost = [ride_id for ride_id in self.sweep.lost() or [] if ride_id not in self._hand]
        for ride_id in lost[:room]:
            if self._take_up(ride_id, lost=True):
                done.swept.append(ride_id)
        if len(lost) <= room and not self.sweep.goes_on:  # else as soon as there is room
            self._sweep_at = now + self._sweep_every

    @property
    def _room_to_take_up(self) -> int:
        """How many rides may be taken over at once: others may deliver them, too.

        While the receiver is only probed: one, when it may be asked and nothing in hand is due.
        """
        if self._deliveries.breaker.is_open:
            return int(self._deliveries.room > 0 and self._hand.next_due_in() > 0)
        return max(0, min(SHARE - self._hand.fresh, self._hand.room))

    def _take_up(self, ride_id: int, *, lost: bool = False) -> bool:
        if ride_id in self._hand or ride_id in self._deliveries:
            return False
        self._hand.take(ride_id, None, lost=lost)
        return True

    def read(self, done: Round, wait: float) -> None:
        """Read on as far as there is room to deliver at once, and look at what is held again."""
        room = self._deliveries.room - self._hand.fresh
        if room > 0 and self._passing:
            room = SHARE
        room = min(room, self.room, SHARE)
        entries = self._held
        if room > 0:
            idle = not (self._deliveries.under_way or self._deliveries.unsaved)
            pause = min(wait, self._hand.next_due_in())
            if self._held:
                pause = min(pause, next(self._held_pauses))
            else:
                self._held_pauses = delays(HELD_POLL, HELD_POLL_LONGEST)
            began = time.monotonic()
            entries = self._held + self._group.read(room, pause if idle else 0)
            if entries and not self._held and time.monotonic() - began > GIVE_WAY:
                time.sleep(GIVE_WAY)
        if entries:
            reached(Step.AFTER_READING)
            self._held = []
            self._passing = self._sort(entries, done) == len(entries) >= room > 0

    def _sort(self, entries: list[Entry], done: Round, *, taken_over: bool = False) -> int:
        """Take up the rides that entries are about; returns how many entries are done with."""
        if not entries:
            return 0
        arrived = self._arrivals.sort_out(entries)
        self._held += arrived.held
        for entry, ride_id in arrived.news:
            under_way = ride_id in self._deliveries
            self._hand.take(ride_id, entry, taken_over=taken_over, under_way=under_way)
        done.set_aside += arrived.dead
        done.unbelieved.foreign += arrived.unbelieved.foreign
        done.unbelieved.uncommitted += arrived.unbelieved.uncommitted
        self._group.ack(arrived.done)
        return len(arrived.done)
