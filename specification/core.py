"""The core: writers, the order barrier, streamers and their terms, the log, consumers with totals.

Each transition is a method, named after the step of the code that it stands for: it takes a state
and what can be observed of the step, and returns the next state, or raises Refused where the
protocol does not allow it. None of them knows of a bound: `choices` alone does.

A name is never used twice: transactions, terms and entries are numbered as they begin, so states
that differ only in who is who are one. The lock of the leader is not relied on: a streamer that was
overtaken in the middle of a batch still appends and tries to commit. A process that crashes forgets
what it had read; one that hangs is one whose next step does not come.

From the moment whose state a fail-over will bring back, consumers stand still: what they commit is
undone, what they have read is forgotten, and nobody else reads either. (That they do no harm is
seen where no fail-over comes.) Writers of the lost time end before it: those that commit later
differ from them in nothing that is kept.
"""

from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from specification.explorer import System
from specification.states import (
    Database,
    Entry,
    Invariants,
    Leader,
    Reading,
    Ride,
    State,
    Step,
    Total,
    Value,
    Writer,
    between,
    end,
    given,
    is_true,
    named,
    require,
    swap,
    with_,
)


def staged_until_sent(s: State) -> bool:
    """A ride has its record until it is sent."""
    above = [ride for ride in s.db.rides if ride.id > s.db.last_sent]
    return above == [ride for ride in s.db.staged if ride.id > s.db.last_sent]


def only_settled_is_sent(s: State) -> bool:
    """No record is staged behind the log's back; true entries rise, or were there before."""
    rides = [entry.ride for entry in sent(s)]
    late = any(ride.id <= s.db.last_sent for ride in s.db.staged)
    return not late and all(
        before < ride or ride in rides[:at] for at, (before, ride) in enumerate(pairwise(rides), 1)
    )


def is_a_chain(s: State) -> bool:
    """Each true entry names the ride before it, and nothing that was sent is sent again."""
    return all(
        entry.ride in s.db.rides and not between(s.db.rides, entry.prev, entry.ride.id - 1)
        for entry in sent(s)
    )


def only_true_entries_count(s: State) -> bool:
    """Each total is made up of rides that there are."""
    return all(
        total.distance == sum(times(total, ride) * ride.distance for ride in s.db.rides)
        for total in s.db.totals
    )


def each_counts_once(s: State) -> bool:
    """Each total has each ride up to its checkpoint once."""
    return all(
        times(total, ride) == (ride.id <= total.ride_id)
        for total in s.db.totals
        for ride in s.db.rides
    )


def nothing_counts_early(s: State) -> bool:
    """No checkpoint is past last_sent."""
    return all(total.ride_id <= s.db.last_sent for total in s.db.totals)


def totals_agree(s: State) -> bool:
    """At the same ride, all totals are the same."""
    return len({total.ride_id: total for total in s.db.totals}) == len(
        {(total.ride_id, total.distance) for total in s.db.totals}
    )


def sent(s: State) -> list[Entry]:
    return [e for e in s.log if e.ride.id <= s.db.last_sent and is_true(s.db, e)]


def times(total: Total, ride: Ride) -> int:
    """How often the total has the ride: `choices` gives each a digit of its own, of base four."""
    return total.distance // ride.distance % 4


INVARIANTS: Invariants = {
    "11": nothing_counts_early,
    "10": only_true_entries_count,
    "4": each_counts_once,
    "8": totals_agree,
    "2": only_settled_is_sent,
    "3": is_a_chain,
    "1": staged_until_sent,
}


class Bounds(Value, frozen=True):
    """How often each may happen, and how many records or entries make a full batch."""

    writers: int
    leads: int
    consumers: int
    losses: int = 1
    failovers: int = 1
    batch: int = 2
    resends: int = 0


class Core(System):
    """The protocol within `bounds`; `broken` names the sabotage, if any."""

    def __init__(self, bounds: Bounds, broken: str = "") -> None:
        self.bounds, self.broken = bounds, broken
        totals = (Total(),) * bounds.consumers
        self.invariants = INVARIANTS
        self.start = State(Database(totals=totals), readings=(None,) * bounds.consumers)

    # Writers: api/booking.py.

    def locks(self, s: State, writer: int) -> State:
        """writer {writer} locks rides"""
        require(writer > s.begun)
        return replace(s, begun=writer, writers=(*s.writers, Writer(writer)))

    def draws(self, s: State, writer: int, number: int, distance: int) -> State:
        """writer {writer} draws {number}"""
        mine = named(s.writers, writer)
        require(mine.ride is None and number > s.db.drawn)
        drawing = replace(mine, ride=Ride(number, distance))
        db = replace(s.db, drawn=number)
        return replace(s, db=db, writers=swap(s.writers, mine, drawing))

    def takes(self, s: State, writer: int) -> State:
        """writer {writer} commits its ride and the staged record"""
        mine = named(s.writers, writer)
        new = given(mine.ride)
        rides, staged = (tuple(sorted((*has, new))) for has in (s.db.rides, s.db.staged))
        db = replace(s.db, rides=rides, staged=staged)
        return replace(s, db=db, writers=swap(s.writers, mine))

    def rolls_back(self, s: State, writer: int) -> State:
        """writer {writer} crashes or rolls back"""
        return replace(s, writers=swap(s.writers, named(s.writers, writer)))

    # Streamers: rocket_rides/terms.py, streamer/barrier.py, streamer/drain.py.

    def begins(self, s: State, term: int) -> State:
        """a streamer takes the lead and begins term {term}"""
        require(term not in (name for _, name in s.db.terms))
        others = (after for after in s.db.terms if after[0] != s.db.last_sent)
        db = replace(s.db, terms=(*others, (s.db.last_sent, term)))
        hanging = tuple(leader for leader in s.leaders if leader.batch)
        leaders = (*hanging, Leader(term, s.db.last_sent))
        return replace(s, db=db, leads=s.leads + 1, leaders=leaders)

    def reads_the_sequence(self, s: State, term: int, position: int) -> State:
        """leader {term} reads the sequence: {position}"""
        mine = named(s.leaders, term)
        require(position == s.db.drawn and not mine.position and not mine.batch)
        return replace(s, leaders=swap(s.leaders, mine, replace(mine, position=position)))

    def lists_the_writers(self, s: State, term: int) -> State:
        """leader {term} lists the writers, and waits for those that it has listed before"""
        mine = named(s.leaders, term)
        require(mine.position or self.broken == "writers-first")
        waits = tuple(w.name for w in s.writers if mine.waits is None or w.name in mine.waits)
        if self.broken == "no-barrier":
            waits = ()
        looking = replace(mine, waits=waits)
        if not waits and mine.position:
            looking = replace(mine, waits=None, settled=mine.position, position=0)
        return replace(s, leaders=swap(s.leaders, mine, looking))

    def selects(self, s: State, term: int, count: int) -> State:
        """leader {term} selects up to {count} settled records"""
        mine = named(s.leaders, term)
        batch = self.settled(s, mine)[:count]
        require(batch and not mine.batch)
        return replace(s, leaders=swap(s.leaders, mine, replace(mine, batch=batch)))

    def appends(self, s: State, term: int) -> State:
        """leader {term} appends its batch to the log"""
        mine = named(s.leaders, term)
        require(mine.batch and not mine.sent)
        ids = range(s.appended + 1, s.appended + 1 + len(mine.batch))
        prevs = (mine.last_sent, *(ride.id for ride in mine.batch))
        entries = (Entry(*entry, term) for entry in zip(ids, mine.batch, prevs, strict=False))
        left = () if mine.cut_off else (replace(mine, sent=True),)
        leaders = swap(s.leaders, mine, *left)
        return replace(s, log=(*s.log, *entries), appended=ids[-1], leaders=leaders)

    def sends_twice(self, s: State, term: int) -> State:
        """leader {term} appends its batch to the log, and is going to append it again"""
        return replace(self.appends(s, term), leaders=s.leaders, resends=s.resends + 1)

    def moves_last_sent(self, s: State, term: int, last_sent: int) -> State:
        """leader {term} deletes its batch, moves last_sent to {last_sent} and commits"""
        mine = named(s.leaders, term)
        require(mine.sent and mine.batch[-1].id == last_sent)
        require(self.may_move(s, mine))
        gone = mine.batch if self.broken != "delete-more" else self.settled(s, mine)
        staged = tuple(ride for ride in s.db.staged if ride not in gone)
        db = replace(s.db, last_sent=last_sent, staged=staged)
        moved = replace(mine, last_sent=last_sent, batch=(), sent=False)
        return replace(s, db=db, leaders=swap(s.leaders, mine, moved))

    def is_overtaken(self, s: State, term: int) -> State:
        """leader {term} finds that it was overtaken, and commits nothing"""
        mine = named(s.leaders, term)
        require(mine.sent and not self.may_move(s, mine))
        return replace(s, leaders=swap(s.leaders, mine))

    def crashes(self, s: State, term: int) -> State:
        """leader {term} crashes"""
        return replace(s, leaders=swap(s.leaders, named(s.leaders, term)))

    def may_move(self, s: State, mine: Leader) -> bool:
        as_it_was = s.db.last_sent == mine.last_sent and s.db.terms[-1][1] == mine.name
        return as_it_was or self.broken == "no-compare-and-set"

    def settled(self, s: State, mine: Leader) -> tuple[Ride, ...]:
        return tuple(ride for ride in s.db.staged if mine.last_sent < ride.id <= mine.settled)

    # Consumers: consumers/follower.py, consumers/digest.py, consumers/reader.py.

    def reads(self, s: State, consumer: int, count: int, known: int) -> State:
        """consumer {consumer} reads up to {count} entries, knowing that {known} was sent"""
        total = s.db.totals[consumer]
        require(known <= s.db.last_sent)
        entries = tuple(entry for entry in s.log if entry.redis_id > total.redis_id)[:count]
        reading = Reading(entries, known if len(entries) < count else 0)
        return self.with_reading(s, consumer, reading)

    def counts(self, s: State, consumer: int) -> State:
        """consumer {consumer} counts what it has read, heals, and commits its checkpoint"""
        reading, total = given(s.readings[consumer]), s.db.totals[consumer]
        if not reading.entries and end(s.log) < total.redis_id:
            counted = replace(total, redis_id=0)
        else:
            counted = self.digest(s.db, reading, total)
        totals = with_(s.db.totals, consumer, counted)
        return self.with_reading(replace(s, db=replace(s.db, totals=totals)), consumer, None)

    def digest(self, db: Database, reading: Reading, total: Total) -> Total:
        at, last, distance = total.redis_id, total.ride_id, total.distance
        for entry in reading.entries:
            if not self.believes(db, entry):
                at = entry.redis_id
                continue
            if entry.ride.id > db.last_sent and self.broken != "past-last-sent":
                break
            at = entry.redis_id
            if entry.ride.id > last:
                distance += between(db.rides, last, entry.prev) + entry.ride.distance
                last = entry.ride.id
        upto = min(reading.known, db.last_sent)
        return Total(at, max(last, upto), distance + between(db.rides, last, upto))

    def believes(self, db: Database, entry: Entry) -> bool:
        """Whether its term is this database's, and its ride within that term."""
        return self.broken == "no-terms" or is_true(db, entry)

    def forgets(self, s: State, consumer: int) -> State:
        """consumer {consumer} crashes"""
        return self.with_reading(s, consumer, None)

    def commits_half(self, s: State, consumer: int) -> State:
        """consumer {consumer} commits its checkpoint, and crashes before its total is written"""
        after, was = self.counts(s, consumer), s.db.totals[consumer]
        half = replace(after.db.totals[consumer], distance=was.distance)
        totals = with_(s.db.totals, consumer, half)
        return replace(after, db=replace(s.db, totals=totals))

    def with_reading(self, s: State, consumer: int, reading: Reading | None) -> State:
        return replace(s, readings=with_(s.readings, consumer, reading))

    # Faults.

    def is_cut(self, s: State, kept: int) -> State:
        """Redis loses all of the log but its first {kept} entries"""
        return replace(s, log=s.log[:kept], losses=s.losses + 1)

    def is_trimmed(self, s: State, count: int) -> State:
        """the log is trimmed of its first {count} entries, which not all have read"""
        return replace(s, log=s.log[count:], losses=s.losses + 1)

    def is_backed_up(self, s: State) -> State:
        """to this moment Postgres will be set back"""
        nowhere = replace(s.db, totals=(Total(),) * len(s.readings))
        return replace(s, db=nowhere, backup=s.db, readings=(None,) * len(s.readings))

    def fails_over(self, s: State) -> State:
        """Postgres fails over with loss; streamers of the lost past have their batches still"""
        sending = (leader for leader in s.leaders if leader.batch and not leader.sent)
        leaders = tuple(replace(leader, cut_off=True) for leader in sending)
        return replace(
            s,
            db=given(s.backup),
            backup=None,
            writers=(),
            leaders=leaders,
            failovers=s.failovers + 1,
        )

    # What may come next.

    def choices(self, s: State) -> Iterator[Step]:
        """All steps within the bounds."""
        yield from self.sending(s)
        yield from self.counting(s)
        yield from self.faults(s)
        if s.begun < self.bounds.writers:
            yield self.locks, (s.begun + 1,)
        if s.leads < self.bounds.leads and sum(bool(leader.batch) for leader in s.leaders) < 2:
            yield self.begins, (s.leads + 1,)

    def progress(self, s: State) -> Iterator[Step]:
        """What goes on by itself, the most urgent first. Somebody always leads."""
        yield from self.sending(s)
        if not s.leaders or s.leaders[-1].cut_off:
            yield self.begins, (s.leads + 1,)
        yield from self.counting(s)

    def sending(self, s: State) -> Iterator[Step]:
        for w in s.writers:
            number = s.db.drawn + 1
            weight = 4 ** (number - 1 + self.bounds.writers * s.failovers)  # tells rides apart
            yield (self.takes, (w.name,)) if w.ride else (self.draws, (w.name, number, weight))
        for leader in s.leaders:
            yield from self.of_leader(s, leader)

    def counting(self, s: State) -> Iterator[Step]:
        if s.backup is None:
            for consumer, reading in enumerate(s.readings):
                if reading is not None:
                    yield self.counts, (consumer,)
            for consumer, reading in enumerate(s.readings):
                if reading is None:
                    yield from self.readings(s, consumer)

    def of_leader(self, s: State, mine: Leader) -> Iterator[Step]:
        if mine.sent and not self.may_move(s, mine):
            yield self.is_overtaken, (mine.name,)
        elif mine.sent:
            yield self.moves_last_sent, (mine.name, mine.batch[-1].id)
        elif mine.batch:
            yield self.appends, (mine.name,)
        elif self.settled(s, mine):
            yield self.selects, (mine.name, self.bounds.batch)
        elif self.broken == "writers-first" and mine.waits is None:
            yield self.lists_the_writers, (mine.name,)
        elif not mine.position and s.db.drawn > mine.settled:
            yield self.reads_the_sequence, (mine.name, s.db.drawn)
        elif mine.position and not (mine.waits and {*mine.waits} <= {w.name for w in s.writers}):
            yield self.lists_the_writers, (mine.name,)

    def readings(self, s: State, consumer: int) -> Iterator[Step]:
        """Reads that can change anything: `known` does if it tells more than the entries."""
        total, count = s.db.totals[consumer], self.bounds.batch
        entries = tuple(entry for entry in s.log if entry.redis_id > total.redis_id)[:count]
        told = [
            e.ride.id for e in entries if e.ride.id <= s.db.last_sent and self.believes(s.db, e)
        ]
        more = range(max([total.ride_id, *told]) + 1, s.db.last_sent + 1)
        if entries or end(s.log) < total.redis_id:
            yield self.reads, (consumer, count, 0)
        for known in more if len(entries) < count else ():
            yield self.reads, (consumer, count, known)

    def faults(self, s: State) -> Iterator[Step]:
        for writer in s.writers:
            yield self.rolls_back, (writer.name,)
        for leader in s.leaders:
            yield self.crashes, (leader.name,)
            if s.resends < self.bounds.resends and leader.batch and not leader.sent:
                yield self.sends_twice, (leader.name,)
        for consumer, reading in enumerate(s.readings):
            if reading is not None:
                yield self.forgets, (consumer,)
                if self.broken == "checkpoint-alone":
                    yield self.commits_half, (consumer,)
        if s.losses < self.bounds.losses:
            read = min(total.redis_id for total in (s.backup or s.db).totals)
            for count, entry in enumerate(s.log):
                yield self.is_cut, (count,)
                if entry.redis_id > read and count + 1 < len(s.log):
                    yield self.is_trimmed, (count + 1,)
        if s.failovers < self.bounds.failovers:
            yield self.is_backed_up if s.backup is None else self.fails_over, ()

    def canonical(self, s: State) -> State:
        """Consumers are interchangeable: the one that is less far comes first."""
        if len(s.readings) < 2 or facts(s, 0) <= facts(s, 1):
            return s
        backup = s.backup and replace(s.backup, totals=s.backup.totals[::-1])
        db = replace(s.db, totals=s.db.totals[::-1])
        return replace(s, db=db, backup=backup, readings=s.readings[::-1])

    def is_complete(self, s: State) -> bool:
        last = max((ride.id for ride in s.db.rides), default=0)
        return s.backup is not None or all(total.ride_id >= last for total in s.db.totals)


def facts(s: State, consumer: int) -> tuple[object, ...]:
    """What distinguishes a consumer."""
    reading, db = s.readings[consumer], s.backup or s.db
    return db.totals[consumer], reading is not None, reading
