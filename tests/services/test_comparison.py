"""The leader compares what is staged with the rows, and names what differs."""

import pytest

from tests.support.disasters import stranded
from tests.support.world import World, drain
from unified_log import session_settings
from unified_log.repair import repair
from unified_log.streamer.comparison import DIFFERENT, MOST_POSITIONS, Comparison
from unified_log.streamer.upkeep import Alarms

BARE = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"


def warnings(world: World) -> list[str]:
    return Comparison().warnings(world.connection)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE staged_log_records SET data = data || '{\"distance\": 3}' WHERE id = %s",
        "UPDATE staged_log_records SET type = 'ride.created' WHERE id = %s",
        "DELETE FROM rides WHERE id = %s",
    ],
)
def test_a_record_that_differs_from_its_row_is_named(world: World, change: str) -> None:
    _, second, _ = world.take(1, 2, 3)
    assert warnings(world) == []
    world.connection.execute(change.encode(), [second])
    assert f"staged, but not as log_records has it: records {second}" in warnings(world)


def test_of_many_only_the_first_are_named(world: World) -> None:
    ids = world.take(*range(1, 1200))
    world.connection.execute("DELETE FROM rides")
    [said] = warnings(world)
    assert said.endswith(f"records {', '.join(map(str, ids[:10]))} and more")


def test_a_row_that_nobody_staged_is_named_until_the_log_leaves_it_out(world: World) -> None:
    sent = world.send(1)
    world.connection.execute(BARE, [1])
    bare = sent[-1] + 1
    [said] = warnings(world)
    assert said.startswith(f"inserted, but not staged: rows {bare}; python -m unified_log.repair")


def test_rows_that_the_log_has_passed_unstaged_are_counted_once(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    streamer, alarms, log = world.streamer(), Alarms(), world.log()
    alarms.look(world.connection, log, 0, ())
    ids = world.take(1)
    world.connection.execute(BARE, [2])
    ids += world.take(2)
    drain(streamer)
    for _ in range(2):
        alarms.look(world.connection, log, 0, ())
    [said] = [line for line in caplog.messages if "never staged" in line]
    assert f"2 of the rows in positions {ids[0]} to {ids[-1]}" in said


def test_a_repair_invents_no_such_rows(world: World) -> None:
    comparison = Comparison()
    stranded(world)
    comparison.warnings(world.connection)
    repair(world.connect())
    world.send(1)
    assert comparison.warnings(world.connection) == []


def test_a_stranded_record_was_staged(world: World) -> None:
    comparison = Comparison()
    comparison.warnings(world.connection)
    stranded(world)
    assert comparison.warnings(world.connection) == []


def test_a_busy_log_is_not_counted(world: World) -> None:
    comparison, streamer = Comparison(), world.streamer()
    assert comparison.warnings(world.connection) == []
    world.connection.execute(BARE, [1])
    world.connection.execute("SELECT setval('log_position', %s)", [world.start + MOST_POSITIONS])
    world.take(1)
    drain(streamer)
    assert comparison.warnings(world.connection) == []


def test_the_comparison_reads_a_page_through_indexes(world: World) -> None:
    world.take(*range(1, 3000))
    with world.connect(**session_settings.INDEX_SCANS) as connection:
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {DIFFERENT}".encode()))
    assert "Seq Scan" not in plan
    assert "Hash" not in plan
