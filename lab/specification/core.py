"""The core: writers, the order barrier, streamers and their terms, the log, a consumer's total.

Each step is a method, named after the step of the code that it stands for. It takes a state and
what can be observed of the step, and returns the next state; it raises Refused where the protocol
does not allow the step. No step depends on a bound.

Transactions, terms and entries are numbered as they begin. The model does not rely on the leader's
lock: a streamer that was overtaken in the middle of a batch still appends and tries to commit. A
record without a distance is of another kind: the consumer passes over it.

One consumer is enough: it changes nothing that another process reads. After the moment to which a
fail-over will set Postgres back, it stands still: its commits would be undone. Writers of the lost
time end before the fail-over, since nothing that they commit is kept.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar

from msgspec.structs import asdict, astuple

from lab.specification.explorer import Step, System, require, swap
from lab.specification.states import (
    Consumer,
    Database,
    Entry,
    Leader,
    Ride,
    State,
    Writer,
    between,
    end,
    is_true,
    sent,
)

BATCH = 2  # records or entries, at most


class Core(System):
    # Writers: api/booking.py.

    def locks(self, s: State, new_writer: int) -> State:
        """writer {new_writer} locks the sequence"""
        return s.but(begun=new_writer, writers=(*s.writers, Writer(new_writer)))

    def draws(self, s: State, writer: Writer, number: int, distance: int) -> State:
        """writer {writer} draws {number}"""
        require(writer.ride is None and number > s.drawn)
        drawing = writer.but(ride=Ride(number, distance))
        others = s.others + (distance == 0)
        return s.but(drawn=number, others=others, writers=swap(s.writers, writer, drawing))

    def takes(self, s: State, writer: Writer) -> State:
        """writer {writer} commits its ride and the staged record"""
        ride = require(writer.ride)
        rides, staged = (tuple(sorted((*has, ride))) for has in (s.rides, s.staged))
        return s.but(rides=rides, staged=staged, writers=swap(s.writers, writer))

    def rolls_back(self, s: State, writer: Writer) -> State:
        """writer {writer} crashes or rolls back"""
        return s.but(writers=swap(s.writers, writer))

    # Streamers: unified_log/terms.py, and barrier.py and drain.py in unified_log/streamer/.

    def overtakes(self, s: State, new_term: int) -> State:
        """a streamer takes the lead from the one that has it, and begins term {new_term}"""
        require(new_term not in (name for _, name in s.terms))
        others = (term for term in s.terms if term[0] != s.last_sent)
        hanging = (leader for leader in s.leaders if leader.batch)
        return s.but(
            terms=(*others, (s.last_sent, new_term)),
            leaders=(*hanging, Leader(new_term, s.last_sent)),
            leads=s.leads + 1,
        )

    def begins(self, s: State, new_term: int) -> State:
        """a streamer takes the lead and begins term {new_term}"""
        newest = [name for _, name in s.terms[-1:]]
        require(not any(leader.name in newest and not leader.cut_off for leader in s.leaders))
        return self.overtakes(s, new_term)

    def reads_the_sequence(self, s: State, leader: Leader, position: int) -> State:
        """leader {leader} reads the sequence: {position}"""
        require(position == s.drawn > leader.settled and not leader.position)
        require(not leader.batch and not self.settled(s, leader))
        require((leader.waits is None) != (self.broken == "writers-first"))
        return s.but(leaders=swap(s.leaders, leader, leader.but(position=position)))

    def lists_the_writers(self, s: State, leader: Leader) -> State:
        """leader {leader} lists the writers, and waits for those that it has listed before"""
        names = {w.name for w in s.writers if self.is_seen(w)}
        require(leader.position or self.broken == "writers-first")
        require(not leader.waits or not names.issuperset(leader.waits))
        waits = tuple(sorted(names if leader.waits is None else names.intersection(leader.waits)))
        looking = leader.but(waits=waits)
        if self.broken == "no-barrier" or (leader.position and not waits):
            looking = leader.but(waits=None, settled=leader.position, position=0)
        return s.but(leaders=swap(s.leaders, leader, looking))

    def is_seen(self, writer: Writer) -> bool:
        """Whether the barrier sees a writer. Sabotaged, it watches the rides' table alone."""
        is_other = writer.ride and not writer.ride.distance
        return not (is_other and self.broken == "one-table")

    def selects(self, s: State, leader: Leader, count: int) -> State:
        """leader {leader} selects up to {count} settled records"""
        batch = self.settled(s, leader)[:count]
        require(batch and not leader.batch)
        return s.but(leaders=swap(s.leaders, leader, leader.but(batch=batch)))

    def appends(self, s: State, leader: Leader) -> State:
        """leader {leader} appends its batch to the log"""
        require(leader.batch and not leader.sent)
        ids = range(s.appended + 1, s.appended + 1 + len(leader.batch))
        prevs = (leader.last_sent, *(ride.id for ride in leader.batch))
        of_each = zip(ids, leader.batch, prevs, strict=False)
        entries = (Entry(*entry, leader.name) for entry in of_each)
        left = () if leader.cut_off else (leader.but(sent=True),)
        leaders = swap(s.leaders, leader, *left)
        return s.but(log=(*s.log, *entries), appended=ids[-1], leaders=leaders)

    def sends_twice(self, s: State, leader: Leader) -> State:
        """leader {leader} appends its batch to the log, and is going to append it again"""
        return self.appends(s, leader).but(leaders=s.leaders, resends=s.resends + 1)

    def moves_last_sent(self, s: State, leader: Leader, last_sent: int) -> State:
        """leader {leader} deletes its batch, moves last_sent to {last_sent} and commits"""
        require(leader.sent and leader.batch[-1].id == last_sent)
        as_it_was = s.last_sent == leader.last_sent and s.terms[-1][1] == leader.name
        require(as_it_was or self.broken == "no-compare-and-set")
        gone = leader.batch if self.broken != "delete-more" else self.settled(s, leader)
        staged = tuple(ride for ride in s.staged if ride not in gone)
        moved = leader.but(last_sent=last_sent, batch=(), sent=False)
        return s.but(last_sent=last_sent, staged=staged, leaders=swap(s.leaders, leader, moved))

    def crashes(self, s: State, leader: Leader) -> State:
        """leader {leader} crashes, or finds that it was overtaken"""
        return s.but(leaders=swap(s.leaders, leader))

    def settled(self, s: State, mine: Leader) -> tuple[Ride, ...]:
        return tuple(ride for ride in s.staged if mine.last_sent < ride.id <= mine.settled)

    # Consumers: reader.py and digest.py in unified_log/readers/, consumers/totals/total.py.

    def reads(self, s: State, count: int, known: int) -> State:
        """the consumer reads up to {count} entries, knowing that {known} was sent"""
        me = s.consumer
        require(me.entries is None and known <= s.last_sent and s.backup is None)
        entries = tuple(entry for entry in s.log if entry.redis_id > me.redis_id)[:count]
        told = (e.ride.id for e in entries if e.ride.id <= s.last_sent and self.is_committed(s, e))
        tells_more = known > max([me.ride_id, *told]) and len(entries) < count
        tells_more = tells_more and self.broken != "no-heal"
        require(entries or tells_more or end(s.log) < me.redis_id)
        return s.but(consumer=me.but(entries=entries, known=known if tells_more else 0))

    def counts(self, s: State) -> State:
        """the consumer counts what it has read, heals, and commits its checkpoint"""
        me = s.consumer
        require(me.entries is not None and s.backup is None)
        if not me.entries and end(s.log) < me.redis_id:
            return s.but(consumer=Consumer(0, me.ride_id, me.distance))
        at, last, distance = me.redis_id, me.ride_id, me.distance
        for entry in me.entries or ():
            ours = self.is_committed(s, entry)
            if ours and entry.ride.id > s.last_sent and self.broken != "past-last-sent":
                break
            at = entry.redis_id
            if ours and entry.ride.id > last:
                distance += between(s.rides, last, entry.prev) + entry.ride.distance
                last = entry.ride.id
        upto = min(me.known, s.last_sent)
        distance += between(s.rides, last, upto)
        return s.but(consumer=Consumer(at, max(last, upto), distance))

    def commits_half(self, s: State) -> State:
        """the consumer commits its checkpoint, and crashes before its total is written"""
        require(self.broken == "checkpoint-alone")
        moved = self.counts(s).consumer
        return s.but(consumer=moved.but(distance=s.consumer.distance))

    def forgets(self, s: State) -> State:
        """the consumer crashes"""
        require(s.consumer.entries is not None)
        return s.but(consumer=s.consumer.but(entries=None, known=0))

    def is_committed(self, s: State, entry: Entry) -> bool:
        return self.broken == "no-terms" or is_true(s, entry)

    # Faults.

    def loses(self, s: State, first: int, last: int) -> State:
        """Redis loses all of the log but log[{first}:{last}]"""
        require((first == 0) != (last == len(s.log)))  # a restore, or a wipe; or the cap
        return s.but(log=s.log[first:last], losses=s.losses + 1)

    def is_backed_up(self, s: State) -> State:
        """Postgres is backed up: a fail-over will set it back to this moment"""
        require(s.backup is None)
        idle = s.consumer.but(entries=None, known=0)
        backup = Database(*astuple(s)[:5])
        return s.but(backup=backup, consumer=idle, failovers=s.failovers + 1)

    def fails_over(self, s: State) -> State:
        """Postgres fails over with loss; streamers of the lost past still hold their batches"""
        sending = (leader for leader in s.leaders if leader.batch and not leader.sent)
        leaders = tuple(leader.but(cut_off=True) for leader in sending)
        return s.but(**asdict(require(s.backup)), backup=None, writers=(), leaders=leaders)

    # What may come next.

    def ranges(self, s: State) -> dict[str, Iterable[object]]:
        lost = s.failovers - (s.backup is not None)
        return {
            "writer": s.writers,
            "new_writer": [s.begun + 1],
            "number": [s.drawn + 1],
            # A record of another kind has none. Each ride has a digit of its own, in base four, so
            # a sum shows how often it has each ride. Two rides that drew the same number, before
            # and after a fail-over, have two digits.
            "distance": [4 ** (s.drawn + 4 * lost), 0],
            "leader": s.leaders,
            "new_term": [s.leads + 1],
            "position": [s.drawn],
            "last_sent": {leader.batch[-1].id for leader in s.leaders if leader.batch},
            "count": [BATCH],
            "known": range(s.last_sent + 1),
            "first": range(len(s.log)),
            "last": range(len(s.log) + 1),
        }

    def is_complete(self, s: State) -> bool:
        newest = max((ride.id for ride in s.rides), default=0)
        return not s.staged and s.consumer.ride_id >= newest

    # What must hold.

    def staged_until_sent(self, s: State) -> bool:
        """A ride has its record until it is sent."""
        above = [ride for ride in s.rides if ride.id > s.last_sent]
        return above == [ride for ride in s.staged if ride.id > s.last_sent]

    def only_settled_is_sent(self, s: State) -> bool:
        """No record is staged at or below last_sent; true entries rise, or repeat earlier ones."""
        rides = [entry.ride for entry in sent(s)]
        late = any(ride.id <= s.last_sent for ride in s.staged)
        return not late and all(
            before < ride or ride in rides[:at]
            for at, (before, ride) in enumerate(pairwise(rides), 1)
        )

    def is_a_chain(self, s: State) -> bool:
        """Each true entry is of a ride that exists, and names the ride before it."""
        return all(
            entry.ride in s.rides and not between(s.rides, entry.prev, entry.ride.id - 1)
            for entry in sent(s)
        )

    def total_is_exact(self, s: State) -> bool:
        """A total is the exact sum of the rides up to its checkpoint."""
        return s.consumer.distance == between(s.rides, 0, s.consumer.ride_id)

    def nothing_counts_early(self, s: State) -> bool:
        """No checkpoint is past last_sent."""
        return s.consumer.ride_id <= s.last_sent

    start = State()
    by_chance: tuple[Step, ...] = (
        *(locks, rolls_back, overtakes, sends_twice, crashes),
        *(forgets, commits_half, loses, is_backed_up),
    )
    spends: ClassVar = {
        locks: "begun", overtakes: "leads", sends_twice: "resends",
        loses: "losses", is_backed_up: "failovers",
    }  # fmt: skip
    invariants: ClassVar = {
        "11": nothing_counts_early,
        "8": total_is_exact,
        "2": only_settled_is_sent,
        "3": is_a_chain,
        "1": staged_until_sent,
    }
