"""The leader compares what is staged with the rows, and names what differs."""

import re

import psycopg
import pytest

from tests.support.disasters import stranded
from tests.support.world import World, catch_up, drain
from unified_log import session_settings
from unified_log.repair import repair
from unified_log.streamer.comparison import DIFFERENT, MOST_POSITIONS, Comparison
from unified_log.streamer.leaders_term import leave_out
from unified_log.streamer.upkeep import Alarms
from unified_log.terms import StateLost

BARE = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, %s)"


def warnings(world: World) -> list[str]:
    return Comparison().warnings(world.connection)


def test_a_record_that_differs_from_its_row_is_named(world: World) -> None:
    ids = world.take(1, 2, 3)
    assert warnings(world) == []
    for number, change in enumerate(
        (
            "UPDATE staged_log_records SET data = data || '{\"distance\": 3}' WHERE id = %s",
            "UPDATE staged_log_records SET type = 'ride.created' WHERE id = %s",
            "DELETE FROM rides WHERE id = %s",
        )
    ):
        world.connection.execute(change.encode(), [ids[number]])
        named = ", ".join(map(str, ids[: number + 1]))
        assert f"staged, but not as log_records has it: records {named}" in warnings(world)


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


def test_behind_a_staged_record_it_is_named_with_what_helps_there(world: World) -> None:
    """There the log leaves it out by itself, and no gap shows it."""
    world.take(1)
    world.connection.execute(BARE, [1])
    world.take(2)
    [said] = warnings(world)
    assert said.startswith(f"inserted, but not staged: rows {world.start + 2}; once the log has")
    assert leave_out(world.connection, world.start + 3) == 0
    behind = world.consumer("behind")
    drain(world.streamer())
    passed = world.consumer()
    catch_up(passed)
    [command] = re.findall("unified_log.repair --from [0-9]+", said)
    assert (
        world.service(*command.split()).says("recount: total behind, total consumer0").ends() == 0
    )
    for consumer in (passed, behind, world.consumer("late")):
        assert catch_up(consumer) == world.truth


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


def test_a_stranded_record_was_staged_and_its_repair_invents_no_bare_row(world: World) -> None:
    comparison = Comparison()
    comparison.warnings(world.connection)
    stranded(world)
    assert comparison.warnings(world.connection) == []
    repair(world.connect())
    world.send(1)
    assert comparison.warnings(world.connection) == []


@pytest.mark.parametrize(
    ("statement", "slow"),
    [("BARE", "SELECT 0 FROM pg_sleep(9)"), ("ROWS", "SELECT %s + %s FROM pg_sleep(9)")],
    ids=["compared", "counted"],
)
def test_rows_that_could_not_be_counted_are_counted_at_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch, statement: str, slow: str
) -> None:
    """Whichever statement waits, as behind a locked table, and is cancelled."""
    comparison, streamer = Comparison(), world.streamer()
    comparison.warnings(world.connection)
    world.connection.execute(BARE, [1])
    [last] = world.take(2)
    drain(streamer)
    with world.connect(statement_timeout="50ms") as hurried, monkeypatch.context() as patched:
        patched.setattr(f"unified_log.streamer.comparison.{statement}", slow)
        with pytest.raises(psycopg.errors.QueryCanceled):
            comparison.warnings(hurried)
    [said] = comparison.warnings(world.connection)
    assert f"1 of the rows in positions {last - 1} to {last}" in said


def test_a_busy_log_is_not_counted(world: World) -> None:
    comparison, streamer = Comparison(), world.streamer()
    assert comparison.warnings(world.connection) == []
    world.connection.execute(BARE, [1])
    world.connection.execute("SELECT setval('log_position', %s)", [world.start + MOST_POSITIONS])
    world.take(1)
    drain(streamer)
    assert comparison.warnings(world.connection) == []


def test_a_state_that_is_gone_is_said_to_be(world: World) -> None:
    world.connection.execute("DELETE FROM streamer_state")
    with pytest.raises(StateLost, match="streamer_state is empty"):
        warnings(world)


def test_the_comparison_reads_a_page_through_indexes(world: World) -> None:
    world.take(*range(1, 3000))
    with world.connect(**session_settings.INDEX_SCANS) as connection:
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN {DIFFERENT}".encode()))
    assert "Seq Scan" not in plan
    assert "Hash" not in plan
