"""The sweep: takes up each ride that has no outcome and that the group will not bring any more.

A worker sees a part of the log, so the chain cannot show it a gap. What a flush, a restore, a trim
or a destroyed group took away is found here instead: a settled ride without an outcome that is
neither unread by the group nor pending in it. One worker at a time looks, for the length of a
transaction, so that one that hangs is thrown out by the server. The order is that in which entries
move, so that none can slip by from where was not yet looked to where was looked before:

1. `last_sent`, and how far every ride has an outcome: `complete_to`.
2. The first entry of this history that the group has not read. Rides from there on are to come.
3. What is pending: those rides are in somebody's hands.
4. Which rides up to there have no outcome. They are lost, except those that are in 3.

A ride that was read after 2 is pending in 3, or has its outcome in 4. An attempt under way holds a
lease (`attempts`), so a ride whose pending entry is lost is not attempted by two workers.

`complete_to` then moves up to the first ride without an outcome, unless a mend (`streamer.mend`)
has set it back meanwhile: a ride that was staged behind the log's back lies below. Marked rows are
taken wherever they are: somebody wants them sent again.

A crash leaves nothing behind: the next sweep finds the same rides.
"""

from typing import NamedTuple

import psycopg

from consumers.receipts.arrivals import Arrivals
from consumers.receipts.attempts import SUSPECT, is_due
from consumers.receipts.group import Group
from consumers.receipts.round import Step
from rocket_rides.database import one_row
from rocket_rides.faults import reached
from rocket_rides.locks import Lock
from rocket_rides.log import START, Invalid, decode
from rocket_rides.terms import StateLost

PAGE = 1000  # entries, of a look at the log
MOST_OPEN = 10_000  # rides without an outcome that a worker remembers
# Ids that one look goes on by: a look that took long would keep the worker from its heartbeat.
STRETCH = 50_000

ALONE = "SELECT pg_try_advisory_xact_lock(%s)"
STATE = """
    SELECT last_sent_id, complete_to, mends FROM streamer_state CROSS JOIN receipts_state
"""
# `known` had no outcome the last time; the rides after `after` were not looked at yet. (Of the
# rides up to there, the ones that are not `known` have an outcome, and it never goes away.)
OPEN = f"""
    SELECT id, coalesce({is_due("due_at")}, true), coalesce(unfinished >= {SUSPECT}, false) FROM (
        SELECT id, due_at, unfinished FROM unnest(%(known)s::bigint[]) AS known (id)
        JOIN rides USING (id) LEFT JOIN receipts ON ride_id = id WHERE outcome IS NULL
        UNION ALL (
            SELECT id, due_at, unfinished FROM rides LEFT JOIN receipts ON ride_id = id
            WHERE id > %(after)s AND id <= %(upto)s AND outcome IS NULL
            ORDER BY id LIMIT %(most)s
        )
    ) open ORDER BY id
"""  # noqa: S608
MARKED = f"""
    SELECT ride_id FROM receipts WHERE replay_at IS NOT NULL AND {is_due("due_at")}
    ORDER BY ride_id LIMIT %s
"""  # noqa: S608
# Compare-and-set: a mend counts itself.
COMPLETE = """
    UPDATE receipts_state SET complete_to = %(upto)s
    WHERE complete_to < %(upto)s AND mends = %(mends)s
"""


class _Seen(NamedTuple):
    """What the sweeps of this session know, as long as nobody mends: see OPEN."""

    mends: int
    after: int
    open: list[int]


class Sweep:
    """One worker's sweeps."""

    def __init__(self, connection: psycopg.Connection, group: Group, arrivals: Arrivals) -> None:
        self._connection = connection
        self._group = group
        self._arrivals = arrivals
        self._seen = _Seen(-1, 0, [])
        self.most_open, self.stretch = MOST_OPEN, STRETCH
        self.goes_on = False  # the last look ended where its stretch did

    def marked(self, most: int) -> list[int]:
        """Up to `most` rides whose receipts somebody wants sent again."""
        return [ride_id for (ride_id,) in self._connection.execute(MARKED, [most])]

    def lost(self) -> list[int] | None:
        """The rides that nobody would deliver; None while another worker looks.

        All suspects but one come last: each is tried alone, and that takes long. Raises
        psycopg.Error, redis.RedisError and StateLost.
        """
        self.goes_on = False
        with self._connection.transaction():
            if not one_row(self._connection.execute(ALONE, [int(Lock.SWEEP)]))[0]:
                return None
            row = self._connection.execute(STATE).fetchone()
            if row is None:
                raise StateLost
            last_sent, complete_to, mends = row
            if complete_to >= last_sent:
                return []
            upto = min(last_sent, self._before_first_unread(last_sent))
            reached(Step.WHILE_SWEEPING)
            pending = self._pending()
            return self._look(upto, pending, complete_to, mends)

    def _look(self, upto: int, pending: set[int], complete_to: int, mends: int) -> list[int]:
        if mends != self._seen.mends:
            self._seen = _Seen(mends, complete_to, [])
        after = max(self._seen.after, complete_to)
        most = self.most_open - len(self._seen.open)
        end = min(upto, after + self.stretch)
        values = {"known": self._seen.open, "after": after, "upto": end, "most": most}
        found = self._connection.execute(OPEN, values).fetchall()
        rides = [ride_id for ride_id, _, _ in found]
        new = [ride_id for ride_id in rides if ride_id > after]
        looked = max(after, end if len(new) < most else max(new, default=after))
        self.goes_on = looked == end < upto
        self._seen = _Seen(mends, looked, rides)
        complete = rides[0] - 1 if rides else looked
        self._connection.execute(COMPLETE, {"upto": complete, "mends": mends})
        suspects: list[int] = []
        others: list[int] = []
        for ride_id, due, suspected in found:
            if due and ride_id <= upto and ride_id not in pending:
                (suspects if suspected else others).append(ride_id)
        return suspects[:1] + others + suspects[1:]

    def _before_first_unread(self, last_sent: int) -> int:
        """The ride before the first that the group has yet to read.

        Where foreign entries fill a whole look, nothing is known: 0. The workers read past them.
        """
        entries = self._group.unread(PAGE)
        first = self._arrivals.first_of_ours(entries)
        if first is None:
            return last_sent if len(entries) < PAGE else 0
        return first - 1

    def _pending(self) -> set[int]:
        """The rides of all entries that are pending, whoever has them."""
        rides = set()
        after = START
        while page := self._group.pending_entries(PAGE, after):
            after = page[-1].redis_id
            for entry in page:
                try:
                    rides.add(decode(entry.fields).id)
                except Invalid:
                    continue
        return rides
