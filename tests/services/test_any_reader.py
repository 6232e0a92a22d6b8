"""Whatever happens to a log and to its readers: each record counts once, or is held out.

A few rides go through losses, copies, entries that are no records, refusals, recounts, retries,
crashes and a second process of the same name, in batches and pages of a few records. After each
commit what the handler has taken, and what is held out, are exactly the rides up to the position.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, NamedTuple

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consumers.rides import Ride
from tests.support.listing import TABLE, Listing, hurry, listed
from tests.support.properties import always
from tests.support.world import World, drain
from unified_log.errors import Overtaken, RecordRefused
from unified_log.faults import InjectedCrash, listening
from unified_log.log import Log
from unified_log.readers import held_out, healing, reader, taking
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.held_out import StandsStill
from unified_log.readers.reader import Reader
from unified_log.readers.round import Step
from unified_log.streamer.drain import Streamer

OTHER = "SELECT stage(nextval('log_position'), 'other.kind', '{}')"
POSITION = "SELECT position FROM checkpoints"
HELD = "SELECT position FROM held_out_records"
START_OVER = (
    "DELETE FROM checkpoints",
    "TRUNCATE rides CASCADE",
)


class ByView(Listing):
    """Is given what a gap lacked, in the order of positions."""

    def take(self, records: Sequence[Ride]) -> None:
        positions = [record.id for record in records]
        assert positions == sorted(positions)
        super().take(records)


class BySql(ByView):
    """Heals by SQL of its own."""

    IN_GAP: ClassVar = "FROM rides WHERE id > %s AND id <= %s"

    def heal(self, gap: Gap) -> Healed:
        found = self.connection.execute(f"SELECT distance {self.IN_GAP}", [gap.after, gap.upto])
        distances = [distance for (distance,) in found]
        self.connection.execute(
            f"INSERT INTO listed (name, ride_id, distance) SELECT %s, id, distance {self.IN_GAP}",
            [self.name, gap.after, gap.upto],
        )
        if self.REFUSED.intersection(distances):
            raise RecordRefused("one of a gap")
        self.rides += len(distances)
        return Healed(gap, len(distances))


class Sizes(NamedTuple):
    batch: int
    page: int


class Sessions(NamedTuple):
    world: World
    streamer: Streamer
    log: Log
    connections: list[psycopg.Connection]


class Play:
    """One log, with two processes of one name that read it."""

    def __init__(self, sessions: Sessions, sizes: Sizes, kind: type[Listing]) -> None:
        self.world, self.streamer, self.log, self.connections = sessions
        self.sizes, self.kind = sizes, kind
        for statement in START_OVER:
            self.world.connection.execute(statement)
        drain(self.streamer)
        self.log.start_anew()
        self.readers = [self.begin(0), self.begin(1)]
        kind.REFUSED = set()

    def begin(self, number: int) -> Reader[Listing]:
        handler = self.kind(self.connections[number], "listing0")
        return Reader(self.log, handler, self.sizes.batch)

    def send(self, distances: Sequence[int]) -> None:
        for distance in distances:
            if distance:
                self.world.take(distance)
            else:
                self.world.connection.execute(OTHER)
        drain(self.streamer)

    def lose(self, which: Sequence[int]) -> None:
        entries = self.log.read("0-0", 1000)
        for at in which:
            if at < len(entries):
                self.log.redis.xdel(self.log.name, entries[-1 - at].redis_id)

    def copy(self, which: Sequence[int]) -> None:
        entries = self.log.read("0-0", 1000)
        for at in which:
            if at < len(entries):
                self.log.command("XADD", self.log.name, "*", *entries[-1 - at].fields)

    def spoil(self, which: Sequence[int]) -> None:
        entries = self.log.read("0-0", 1000)
        for at in which:
            if at < len(entries):
                fields = [*entries[-1 - at].fields]
                fields[5] = b"{}"
                self.log.command("XADD", self.log.name, "*", *fields)

    def flush(self) -> None:
        self.log.start_anew()

    def refuse(self, which: set[int]) -> None:
        self.kind.REFUSED = which

    def recount(self) -> None:
        self.world.connection.execute("UPDATE checkpoints SET recount = true")

    def retry(self) -> None:
        self.world.connection.execute("UPDATE held_out_records SET retry = true, dropped_at = NULL")

    def drop(self) -> None:
        self.world.connection.execute(
            "UPDATE held_out_records SET dropped_at = now(), retry = false"
        )

    def restart(self, number: int) -> None:
        self.readers[number] = self.begin(number)

    def run(self, number: int, rounds: int, crash: Step | None, overtakes: bool) -> None:
        """Some rounds, perhaps with a crash, or with a round of the other process in between."""

        def meanwhile(step: Step) -> None:
            if step is Step.BEFORE_STATE and overtakes:
                with listening(lambda _: None):
                    self.run(1 - number, 1, None, False)
            if step is crash:
                raise InjectedCrash(step)

        for _ in range(rounds):
            try:
                with listening(meanwhile):
                    self.readers[number].run_once()
                assert self.readers[number].handler.rides == self.check()
            except (Overtaken, StandsStill, InjectedCrash):
                self.restart(number)
            self.check()

    def check(self) -> int:
        """Returns how many rides are listed."""
        [(position,)] = self.world.connection.execute(POSITION)
        rides = self.world.connection.execute("SELECT id FROM rides WHERE id <= %s", [position])
        held = [position for (position,) in self.world.connection.execute(HELD)]
        took = listed(self.world)
        assert sorted([*took, *held]) == sorted(ride for (ride,) in rides)
        return len(took)

    def end(self) -> None:
        """Once nothing is refused any more, all are there."""
        self.kind.REFUSED = set()
        self.retry()
        self.restart(0)
        hurry(self.readers[0])
        rides = self.world.connection.execute("SELECT id FROM rides ORDER BY id")
        assert listed(self.world) == [ride for (ride,) in rides]
        assert self.world.value("SELECT count(*) FROM held_out_records") == 0


WHICH = st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True)
RUN = st.builds(
    lambda *given: lambda play: play.run(*given),
    st.sampled_from([0, 0, 0, 1]), st.integers(1, 4), st.sampled_from([None, None, None, *Step]),
    st.booleans(),
)  # fmt: skip


def call(name: str, *given: st.SearchStrategy[object]) -> st.SearchStrategy[Callable[[Play], None]]:
    return st.builds(lambda *values: lambda play: getattr(play, name)(*values), *given)


OPS = st.one_of(
    RUN, RUN, RUN, RUN, RUN,
    call("send", st.lists(st.integers(0, 4), min_size=1, max_size=8)),
    call("send", st.lists(st.integers(0, 4), min_size=1, max_size=8)),
    call("lose", WHICH), call("copy", WHICH), call("spoil", WHICH), call("flush"),
    call("refuse", st.sets(st.integers(1, 4), max_size=3)), call("recount"), call("retry"),
    call("drop"), call("restart", st.integers(0, 1)),
)  # fmt: skip


@pytest.mark.parametrize("kind", [ByView, BySql])
def test_each_record_counts_once_or_is_held_out(
    world: World, kind: type[Listing], monkeypatch: pytest.MonkeyPatch
) -> None:
    world.connection.execute(TABLE)
    monkeypatch.setattr(held_out, "MOST_IN_A_ROW", 4)
    connections = [world.connect(), world.connect()]
    sessions = Sessions(world, world.streamer(), world.log(), connections)

    @settings(always, derandomize=EXAMPLES < 100, max_examples=EXAMPLES, suppress_health_check=[*HealthCheck])
    @given(st.builds(Sizes, st.integers(1, 7), st.integers(1, 4)), st.lists(OPS, min_size=10, max_size=30))
    def anything(sizes: Sizes, operations: list[Callable[[Play], None]]) -> None:
        with monkeypatch.context() as patch:
            for module in (healing, reader, taking):
                patch.setattr(module, "PAGE", sizes.page)
            play = Play(sessions, sizes, kind)
            play.send([1, 2, 3, 4, 0, 1, 2])
            for operation in operations:
                operation(play)
            play.end()

    anything()


import os
EXAMPLES = int(os.environ.get("EX", "30"))
