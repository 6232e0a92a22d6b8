"""Every step, in any order: the real streamer and consumers, driven by Hypothesis.

Writers open, commit and roll back; the streamer and the consumers do single rounds, with a crash at
any of their numbered steps; the log is trimmed, wiped, cut and fouled; strangers write to it. After
each of these holds what must hold by then, and in the end every total is exact.

The steps to crash at are those of the `Step` enums: one that is added later is covered by itself.
"""

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from consumers.round import Step as ConsumerStep
from consumers.totals.total import Total
from rocket_rides import database, session_settings
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.log import START, Invalid, decode
from rocket_rides.terms import LAST_SENT
from streamer.drain import Step as StreamerStep
from streamer.drain import Streamer
from streamer.trimming import Caps, Trimmer
from tests.support.properties import always
from tests.support.world import Consumer, World, drain, eventually, exact, take

BATCH = 3  # small, so that batches end in the middle of things
CAP = 4
AGE = 3600.0
MOST_CONSUMERS = 3
EXAMPLES = 40

# The numbers of the rides go on from one example to the next: they may start anywhere.
EMPTY = """
    DELETE FROM dead_letters;
    DELETE FROM consumer_states; DELETE FROM checkpoints;
    DELETE FROM staged_log_records; DELETE FROM rides; DELETE FROM terms;
    UPDATE streamer_state SET last_sent_id = 0
"""
TERMS = "SELECT after, term FROM terms ORDER BY after"
RIDES = "SELECT id, distance FROM rides ORDER BY id"
STAGED = "SELECT id FROM staged_log_records ORDER BY id"
WRONG = """
    SELECT name, last_ride_id, last_sent_id, total_distance, exact
    FROM streamer_state, checkpoints JOIN consumer_states USING (kind, name)
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(distance), 0) exact FROM rides WHERE id <= last_ride_id
    ) rides
    WHERE last_ride_id > last_sent_id OR total_distance <> exact
"""
distances = st.integers(1, 10**12 - 1).map(lambda millimetres: Decimal(millimetres).scaleb(-3))


class Sending(NamedTuple):
    """A round of the streamer."""

    twice: bool
    crash_at: StreamerStep | None


class Counting(NamedTuple):
    """A round of a consumer."""

    consumer: int
    crash_at: ConsumerStep | None


def crashes(steps: type[Enum]) -> st.SearchStrategy[Any]:
    """A crash at one of the steps, in one round of four."""
    return st.sampled_from([*steps, *[None] * (3 * len(steps))])


turns = st.lists(
    st.builds(Sending, st.booleans(), crashes(StreamerStep))
    | st.builds(Counting, st.integers(0, MOST_CONSUMERS - 1), crashes(ConsumerStep)),
    min_size=1,
    max_size=8,
)


class System(RuleBasedStateMachine):
    """One database and one log, and whoever works on them."""

    world: World
    idle: list[psycopg.Connection]
    writers = Bundle("writers")

    @initialize()
    def start(self) -> None:
        self.look = self.world.connection
        self.look.execute(EMPTY, prepare=False)
        self.log = self.world.log()
        self.log.redis.delete(self.log.name)
        self.trimmer = Trimmer(self.look, self.log, Caps(CAP, AGE))
        self.open: list[psycopg.Connection] = []
        self.consumers: dict[str, Consumer] = {}
        self.seen: set[str] = set()  # the Redis ids of the entries that were checked
        self.told: list[int] = []  # the rides that they told of, without re-sends
        self.start_the_streamer()
        self.a_consumer_is_added()

    def connect(self, **session: str) -> psycopg.Connection:
        """A session, on a connection that has had others: a new one costs more than many rounds."""
        connection = self.idle.pop() if self.idle else self.world.connect()
        database.configure(connection, **session)
        self.open.append(connection)
        return connection

    def close(self, connection: psycopg.Connection) -> None:
        """End a session, of which nothing is left then, as if its connection was closed."""
        self.open.remove(connection)
        connection.rollback()
        connection.autocommit, connection.isolation_level = True, None
        connection.execute("DISCARD ALL")
        self.idle.append(connection)

    # Writers.

    @rule(target=writers, distance=distances)
    def a_writer_begins(self, distance: Decimal) -> psycopg.Connection:
        connection = self.connect()
        connection.autocommit = False
        take(connection, str(distance))
        return connection

    @rule(writer=writers, distance=distances)
    def a_writer_goes_on(self, writer: psycopg.Connection, distance: Decimal) -> None:
        take(writer, str(distance))

    @rule(writer=consumes(writers), commits=st.booleans())
    def a_writer_ends(self, writer: psycopg.Connection, commits: bool) -> None:
        if commits:
            writer.commit()
        self.close(writer)

    # The streamer, and consumers.

    def start_the_streamer(self) -> None:
        self.streaming = self.connect(**session_settings.INDEX_SCANS)
        self.streamer = Streamer(self.streaming, self.log, BATCH)

    def start_a_consumer(self, name: str) -> None:
        self.consumers[name] = Consumer(self.log, Total(self.connect(), name), BATCH)

    @precondition(lambda self: len(self.consumers) < MOST_CONSUMERS)
    @rule()
    def a_consumer_is_added(self) -> None:
        self.start_a_consumer(f"consumer{len(self.consumers)}")

    @rule(taken=st.lists(distances, max_size=2 * BATCH), turns=turns)
    def the_fleet_works(self, taken: list[Decimal], turns: list[Sending | Counting]) -> None:
        """One rule, since Hypothesis leaves out some of the rules in each example."""
        take(self.look, *map(str, taken))
        for turn in turns:
            if isinstance(turn, Sending):
                self.send(turn)
            else:
                self.count(turn)

    def send(self, turn: Sending) -> None:
        try:
            with crash_at(turn.crash_at):
                self.streamer.run_once(double_send=turn.twice)
        except InjectedCrash:
            self.close(self.streaming)
            self.start_the_streamer()

    def count(self, turn: Counting) -> None:
        name = f"consumer{turn.consumer % len(self.consumers)}"
        try:
            with crash_at(turn.crash_at):
                self.consumers[name].run_once()
        except InjectedCrash:
            self.close(self.consumers[name]._connection)
            self.start_a_consumer(name)

    # The log.

    @rule(trim=st.sampled_from([Trimmer.trim, Trimmer.make_room]))
    def the_log_is_trimmed(self, trim: Callable[[Trimmer], int]) -> None:
        trim(self.trimmer)

    @rule(lost=st.integers(1, 2 * BATCH) | st.just(10_000))
    def the_newest_entries_are_lost(self, lost: int) -> None:
        """As after a crash without fsync: the stream does not know that it ever had them."""
        kept = self.log.read(START, 10_000)[:-lost]
        self.log.redis.delete(self.log.name)
        for entry in kept:
            pairs = dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
            self.log.redis.xadd(self.log.name, pairs, id=entry.redis_id)  # type: ignore[arg-type]

    @rule(data=st.sampled_from([b"", b"\xff", b"{}", b'{"id": 1e3, "distance": 1}', b"[1]"]))
    def nonsense_is_appended(self, data: bytes) -> None:
        self.log.redis.xadd(self.log.name, {"data": data, "prev": b"0"})

    @rule(
        behind=st.integers(-BATCH, 2 * BATCH),
        count=st.integers(1, 2 * BATCH),
        term=st.sampled_from(["0123456789abcdef", "fedcba9876543210", "one of ours"]),
        distance=distances,
    )
    def a_stranger_writes(self, behind: int, count: int, term: str, distance: Decimal) -> None:
        """Another database's rides, with ids like ours; or a leader that does not know it was one.

        In a term of ours that leader is past its end: before, it had committed what it sent.
        """
        [(last_sent,)] = self.look.execute(LAST_SENT).fetchall()
        first = max(1, last_sent - behind)
        if term == "one of ours":
            older = self.look.execute(TERMS).fetchall()
            if len(older) < 2:
                return
            (_, term), (end, _) = older[-2:]
            first = max(first, end + 1)
        for number in range(first, first + count):
            data = f'{{"id": {number}, "distance": {distance}}}'
            fields = {"data": data, "prev": str(number - 1), "term": term}
            self.log.redis.xadd(self.log.name, fields)  # type: ignore[arg-type]

    def believed(self, number: int, term: bytes) -> bool:
        """Whether an entry is this database's: said again here, in other words."""
        terms = self.look.execute(TERMS).fetchall()
        ends = [after for after, _ in terms[1:]] + [2**62]
        return any(
            name.encode() == term and after < number <= end
            for (after, name), end in zip(terms, ends, strict=True)
        )

    # What must hold after every step.

    @invariant()
    def what_was_sent_is_settled_and_nothing_else_is_gone(self) -> None:
        [(last_sent,)] = self.look.execute(LAST_SENT).fetchall()
        staged, rides = ([number for number, *_ in self.look.execute(q)] for q in (STAGED, RIDES))
        assert staged == [number for number in rides if number > last_sent]
        assert max([0, *self.told]) <= max([last_sent, *staged])

    @invariant()
    def the_log_is_a_chain_that_rises(self) -> None:
        distance_of: dict[int, Decimal] = dict(self.look.execute(RIDES).fetchall())
        for entry in self.log.read(START, 10_000):
            if entry.redis_id in self.seen:
                continue
            self.seen.add(entry.redis_id)
            with suppress(Invalid):
                record = decode(entry.fields)
                if not self.believed(record.id, record.term):
                    continue
                assert record.distance == distance_of[record.id]
                assert record.prev == max([0, *(n for n in distance_of if n < record.id)])
                assert record.id > max([0, *self.told]) or record.id in self.told
                self.told.append(record.id)

    @invariant()
    def every_total_is_exact_where_its_consumer_stands(self) -> None:
        assert self.look.execute(WRONG).fetchall() == []

    def teardown(self) -> None:
        """Whoever is still writing gives up; then everybody catches up, and agrees."""
        try:
            for connection in self.open:
                connection.rollback()
            # A round may only find that what it waited for was rolled back.
            eventually(lambda: drain(self.streamer) == self.world.staged() == 0)
            self.the_newest_entries_are_lost(BATCH)  # and no ride follows to tell of it
            for consumer in self.consumers.values():
                assert exact(self.world, consumer)
        finally:
            for connection in list(self.open):
                self.close(connection)
            self.log.redis.close()


def test_whatever_happens_in_whatever_order_every_ride_counts_once(world: World) -> None:
    run_state_machine_as_test(
        type("SystemOfThisTest", (System,), {"world": world, "idle": []}),
        settings=settings(
            always,
            max_examples=EXAMPLES,
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
