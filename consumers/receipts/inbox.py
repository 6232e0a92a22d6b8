"""The loop that reads the log into the inbox. It never waits for a delivery.

A worker is given entries by the group, puts their rides into the inbox, and only then acknowledges
them. So a pending entry is one that somebody is about to put there, or died before he did: such
entries are claimed after CLAIM_AFTER, the worker's own at once when it starts anew. Records of
other types pass.
"""

import time

import psycopg

from consumers.belief import KnownTerms, SetAside, is_ours
from consumers.receipts.group import Group, GroupGone
from consumers.receipts.round import Round, Step
from consumers.receipts.statements import INBOX, SET_ASIDE
from consumers.rides import TYPE, ride
from rocket_rides.database import one_row
from rocket_rides.faults import reached
from rocket_rides.log import Entry, Invalid, decode

RIDE = TYPE.encode()
BATCH = 1000  # entries
LOOKS = 3  # at what others have left pending, in the time after which it is claimed
# Seconds, after a pause of at least as long. By then the streamer has committed what it sent, and
# the totals, which somebody may wait for, have had the processors.
GIVE_WAY = 0.005


class Inbox:
    """One session of a worker's reading."""

    def __init__(self, connection: psycopg.Connection, group: Group, claim_after: float) -> None:
        self._connection = connection
        self._group = group
        self._claim_after = claim_after
        self._terms = KnownTerms()
        self._is_new = True
        self._look_at = 0.0

    def run_once(self, *, wait: float = 0) -> Round:
        """Take in one batch of entries; waits up to `wait` seconds for the first.

        Raises psycopg.Error, redis.RedisError or StateLost: then what was read stays pending.
        """
        done = Round()
        try:
            entries = self._left_behind()
            done.claimed = len(entries)
            if entries := entries or self._new(wait):
                self._take_in(entries, done)
        except GroupGone:
            done.made_group = self._group.make()
        return done

    def _left_behind(self) -> list[Entry]:
        """What a member has read and not acknowledged in time; our own, whenever it was."""
        if self._is_new:
            found = self._group.take_over(BATCH, 0, self._group.member)
            self._is_new = False
            return found
        if time.monotonic() < self._look_at:
            return []
        found = self._group.take_over(BATCH, self._claim_after)
        if not found:  # else there may be more
            self._look_at = time.monotonic() + self._claim_after / LOOKS
        return found

    def _new(self, wait: float) -> list[Entry]:
        began = time.monotonic()
        entries = self._group.read(BATCH, wait)
        if entries and time.monotonic() - began > GIVE_WAY:
            time.sleep(GIVE_WAY)
        return entries

    def _take_in(self, entries: list[Entry], done: Round) -> None:
        reached(Step.AFTER_READING)
        bounds = self._terms.learn(self._terms.ask(self._connection).fetchone())
        rides, passed = [], 0
        for entry in entries:
            try:
                record = decode(entry.fields)
                if not is_ours(record, bounds):
                    done.not_ours.add(record, bounds)
                elif record.type == RIDE:
                    rides.append(ride(record).id)
                else:
                    passed += 1
            except Invalid as why:
                done.set_aside.append(SetAside(entry, str(why)))
        group, worker = self._group.name, self._group.member
        for entry, reason in done.set_aside:
            kept = {"redis_id": entry.redis_id, "fields": entry.fields, "reason": reason}
            self._connection.execute(SET_ASIDE, kept | {"group": group, "worker": worker})
        not_ours = done.not_ours.total
        values = {"rides": rides, "worker": worker, "not_ours": not_ours, "passed": passed}
        [done.queued] = one_row(self._connection.execute(INBOX, values))
        done.is_settled = max(rides, default=0) <= bounds.last_sent
        reached(Step.BEFORE_ACKNOWLEDGING)
        self._group.acknowledge([entry.redis_id for entry in entries])
