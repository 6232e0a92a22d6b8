"""Whatever happens to a log and to its readers: each record counts once, or is held out.

A few rides go through losses, copies, entries that are no records, refusals, recounts, retries,
crashes and a second process of the same name, in batches and pages of a few records. After each
round, what the handler has taken and what is held out are exactly the rides up to its position.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.rides import Ride
from tests.support.listing import TABLE, Listing, hurry, listed
from tests.support.properties import always
from tests.support.world import World, drain
from unified_log.errors import Overtaken, RecordRefused
from unified_log.faults import InjectedCrash, listening
from unified_log.log import Entry, Log
from unified_log.readers import healing, held_out, reader, taking
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.held_out import StandsStill
from unified_log.readers.reader import Reader
from unified_log.readers.round import RoundStep
from unified_log.streamer.drain import Streamer

OTHER_TYPE = "SELECT stage(nextval('log_position'), 'other.kind', '{}')"
RIDES = "SELECT id FROM rides WHERE id <= (SELECT position FROM checkpoints) ORDER BY id"
HELD = "SELECT position FROM held_out_records"
RECOUNT = "UPDATE checkpoints SET recount = true"
RETRY = "UPDATE held_out_records SET retry = true, dropped_at = NULL"
DROP = "UPDATE held_out_records SET retry = false, dropped_at = now()"
NOTHING = "DELETE FROM checkpoints", "TRUNCATE rides CASCADE"
IN_GAP = """
    INSERT INTO listed (name, ride_id, distance)
    SELECT %s, id, distance FROM rides WHERE id > %s AND id <= %s RETURNING distance
"""


class ByView(Listing):
    """Gets what a gap lacked among the others, by position."""

    def take(self, records: Sequence[Ride]) -> None:
        positions = [record.id for record in records]
        assert positions == sorted(positions)
        super().take(records)


class BySql(ByView):
    """Heals by SQL of its own."""

    def heal(self, gap: Gap) -> Healed:
        healed = self.connection.execute(IN_GAP, [self.name, gap.after, gap.upto]).fetchall()
        if self.REFUSED.intersection(distance for (distance,) in healed):
            raise RecordRefused("one of a gap")
        self.rides += len(healed)
        return Healed(gap, len(healed))


class Sizes(NamedTuple):
    """Of a batch, and of a page."""

    batch: int
    page: int


class Sessions(NamedTuple):
    """Of all plays, since opening them takes longer than a play."""

    world: World
    streamer: Streamer
    log: Log
    connections: list[psycopg.Connection]


class Play:
    """An empty log, and two processes of one name that read it."""

    def __init__(self, sessions: Sessions, sizes: Sizes, kind: type[Listing]) -> None:
        self.world, self.streamer, self.log, self.connections = sessions
        self.sizes, self.kind = sizes, kind
        for statement in NOTHING:
            self.execute(statement)
        drain(self.streamer)
        self.log.start_anew()
        kind.REFUSED = set()
        self.readers = [self.begin(0), self.begin(1)]

    def begin(self, number: int) -> Reader[Listing]:
        handler = self.kind(self.connections[number], "listing0")
        return Reader(self.log, handler, self.sizes.batch)

    def execute(self, statement: str) -> list[int]:
        found = self.world.connection.execute(statement.encode())
        return [value for (value,) in found] if found.description else []

    def send(self, distances: Sequence[int]) -> None:
        """Rides of these distances; 0 is a record of another type."""
        for distance in distances:
            if distance:
                self.world.take(distance)
            else:
                self.world.connection.execute(OTHER_TYPE)
        drain(self.streamer)

    def entries(self, which: Sequence[int]) -> list[Entry]:
        """Those that are there, counted from the end of the log."""
        found = self.log.read("0-0", 1000)[::-1]
        return [found[at] for at in which if at < len(found)]

    def lose(self, which: Sequence[int]) -> None:
        for entry in self.entries(which):
            self.log.command("XDEL", self.log.name, entry.redis_id)

    def copy(self, which: Sequence[int]) -> None:
        for entry in self.entries(which):
            self.log.command("XADD", self.log.name, "*", *entry.fields)

    def spoil(self, which: Sequence[int]) -> None:
        """Copies without their data."""
        for entry in self.entries(which):
            self.log.command("XADD", self.log.name, "*", *entry.fields[:5], "{}", *entry.fields[6:])

    def wipe(self) -> None:
        self.log.start_anew()

    def refuse(self, distances: set[int]) -> None:
        self.kind.REFUSED = distances

    def restart(self, number: int) -> None:
        self.readers[number] = self.begin(number)

    def run(self, number: int, rounds: int, crash: RoundStep | None, is_overtaken: bool) -> None:
        """Some rounds, perhaps with a crash, or with one of the other process in between."""

        def meanwhile(step: Enum) -> None:
            if step is RoundStep.BEFORE_STATE and is_overtaken:
                with listening(lambda _: None):
                    self.run(1 - number, 1, None, False)
            if step is crash:
                raise InjectedCrash(step)

        for _ in range(rounds):
            try:
                with listening(meanwhile):
                    done = self.readers[number].run_once()
                rides = self.readers[number].handler.rides
                assert done.did_nothing or rides == len(listed(self.world))
            except (Overtaken, StandsStill, InjectedCrash):
                self.restart(number)
            assert sorted([*listed(self.world), *self.execute(HELD)]) == self.execute(RIDES)

    def end(self) -> None:
        """Once nothing is refused any more, all are there."""
        self.refuse(set())
        self.execute(RETRY)
        self.restart(0)
        hurry(self.readers[0])
        assert listed(self.world) == self.execute("SELECT id FROM rides ORDER BY id")
        assert self.execute(HELD) == []


Operation = Callable[[Play], None]


def call(name: str, *given: st.SearchStrategy[object]) -> st.SearchStrategy[Operation]:
    return st.builds(lambda *values: lambda play: getattr(play, name)(*values), *given)


WHICH = st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True)
RUN = call(
    "run",
    st.sampled_from([0, 0, 0, 1]),
    st.integers(1, 4),
    st.sampled_from([None, None, None, *RoundStep]),
    st.booleans(),
)
SEND = call("send", st.lists(st.integers(0, 4), min_size=1, max_size=8))
OPERATIONS = st.one_of(
    RUN, RUN, RUN, RUN, RUN, SEND, SEND,
    call("lose", WHICH), call("copy", WHICH), call("spoil", WHICH), call("wipe"),
    call("refuse", st.sets(st.integers(1, 4), max_size=3)),
    call("execute", st.sampled_from([RECOUNT, RETRY, DROP])), call("restart", st.integers(0, 1)),
)  # fmt: skip


@pytest.mark.parametrize("kind", [ByView, BySql])
def test_each_record_counts_once_or_is_held_out(
    world: World, kind: type[Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection.execute(TABLE)
    monkeypatch.setattr(held_out, "MOST_IN_A_ROW", 4)
    connections = [world.connect(), world.connect()]
    sessions = Sessions(world, world.streamer(), world.log(), connections)

    @settings(always, max_examples=15)
    @given(
        st.builds(Sizes, st.integers(1, 7), st.integers(1, 4)),
        st.lists(OPERATIONS, min_size=10, max_size=30),
    )
    def anything(sizes: Sizes, operations: list[Operation]) -> None:
        with monkeypatch.context() as patch:
            for module in (healing, reader, taking):
                patch.setattr(module, "PAGE", sizes.page)
            play = Play(sessions, sizes, kind)
            play.send([1, 2, 3, 4, 0, 1, 2])
            for operation in operations:
                operation(play)
            play.end()

    anything()
