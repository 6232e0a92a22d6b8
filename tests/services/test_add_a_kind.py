"""docs/add-a-kind.md is true: a third kind of record, made as it says, counts exactly."""

from typing import ClassVar

import pytest

from rocket_rides.settings import PROJECT
from tests.support.disasters import flush, stranded
from tests.support.tips import TIP, Tips, tip
from tests.support.world import World, drain, eventually
from unified_log.database import one_row
from unified_log.readers.gaps import Gap, Healed
from unified_log.readers.reader import Reader
from unified_log.repair import repair

PAGE = (PROJECT / "docs/add-a-kind.md").read_text()
KIND = (PROJECT / "tests/support/tips/3_tips.sql").read_text()
SUMS = "SELECT (SELECT cents FROM tip_sums WHERE name = %s), (SELECT sum(cents) FROM tips)"


def agrees(world: World, name: str = "tips0") -> bool:
    kept, truth = world.connection.execute(SUMS, [name]).fetchone() or (0, 1)
    return bool(kept == truth)


def give(world: World, *cents: int) -> None:
    for each in cents:
        world.connection.execute(TIP, [1, each])


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= 500


@pytest.mark.proves("third-kind")
def test_a_kind_that_is_added_while_the_fleet_runs_counts_through_crashes_and_a_lost_log(
    world: World,
) -> None:
    total = world.service("consumers", "consumer0", CRASH_RATE="0.2").says("stands at")
    world.service("streamer", DOUBLE_SEND_RATE="0.2").says("leading")
    world.take(1, 2)
    world.connection.execute(KIND, prepare=False)
    give(world, 100, 250)
    world.take(3)
    eventually(lambda: world.standing()[1] == world.truth[1] and world.staged() == 0)
    world.service("tests.support.tips", "tips0", CRASH_RATE="0.2").says("stands at")
    eventually(lambda: agrees(world))
    flush(world)
    give(world, 50)
    world.take(4)
    eventually(lambda: agrees(world) and world.standing() == world.truth)
    assert "Traceback" not in total.output.read_text()


def test_a_stranded_record_of_it_is_repaired(world: World) -> None:
    world.connection.execute(KIND, prepare=False)
    reader = Reader(world.log(), Tips(world.connect(), "tips0"))
    give(world, 100)
    drain(world.streamer())
    stranded(world)
    world.connection.execute("UPDATE tip_sums SET cents = 1")
    assert "tips0" in repair(world.connect())[1]
    for _ in range(3):
        reader.run_once()
    assert agrees(world)


class Newer(Tips):
    """Of a second version: what has another meaning has another type, and another table."""

    TYPES: ClassVar = {"tip.create": tip, "tip.create.2": tip}

    def heal(self, gap: Gap) -> Healed:
        healed = super().heal(gap)
        found = "SELECT count(*), coalesce(sum(cents), 0) FROM tips_2 WHERE id > %s AND id <= %s"
        tips, cents = one_row(self.connection.execute(found, [gap.after, gap.upto]))
        self.add(cents)
        return Healed(gap, healed.records + tips)


@pytest.mark.parametrize("lost", [False, True])
def test_an_old_and_a_new_reader_of_one_log_are_each_right(world: World, lost: bool) -> None:
    world.connection.execute(KIND, prepare=False)
    world.connection.execute("CREATE TABLE tips_2 (LIKE tips INCLUDING ALL)")
    old = Reader(world.log(), Tips(world.connect(), "old"))
    new = Reader(world.log(), Newer(world.connect(), "new"))
    give(world, 100)
    second = TIP.replace("INTO tips ", "INTO tips_2 ").replace("'create'", "'create.2'")
    grown = second.replace("'id', id,", "'id', id, 'currency', 'EUR',")
    world.connection.execute(grown, [1, 7])
    give(world, 10)
    drain(world.streamer())
    if lost:
        flush(world)
    for reader in (old, new):
        for _ in range(4):
            reader.run_once()
    sums = world.connection.execute("SELECT name, cents FROM tip_sums ORDER BY name")
    assert sums.fetchall() == [("new", 117), ("old", 110)]
