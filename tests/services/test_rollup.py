"""The rollup: every minute is right for all rides up to `complete_to`; dirty minutes fold."""

import re
from enum import Enum

import psycopg
import pytest
from psycopg.abc import Params

from consumers.rollup import indexer, marker
from consumers.rollup.dirty import Mark
from consumers.rollup.minutes import COMPUTE, SESSION, compute
from consumers.rollup.step import RollupStep
from rocket_rides.settings import PROJECT
from tests.support.clock import Clock
from tests.support.disasters import trigger
from tests.support.rollup import (
    complete_to,
    exact,
    hurry,
    is_complete,
    kept,
    lead,
    send_at,
    take_at,
    work,
)
from tests.support.world import World, catch_up, drain, eventually
from unified_log.errors import Overtaken
from unified_log.faults import listening
from unified_log.readers.reader import REST, SMALLEST_BATCH
from unified_log.terms import StateLost

SLEEPING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"


def test_rides_are_in_their_minutes_to_the_millimetre(world: World) -> None:
    send_at(
        world,
        ("2026-03-01 10:00:00Z", "0.001"),
        ("2026-03-01 10:00:59.999999Z", "999999999.999"),
        ("2026-03-01 10:01:00Z", "3"),
        ("2026-03-01 12:07:30+02:30", "4"),
        ("0044-03-15 12:00:00Z BC", "5"),
    )
    leading = lead(world)
    hurry(leading)
    assert is_complete(world)
    assert [(rides, str(distance)) for _, rides, distance in kept(world)] == [
        (1, "5.000"),
        (1, "4.000"),
        (2, "1000000000.000"),
        (1, "3.000"),
    ]
    [last] = send_at(world, ("2026-03-01 10:00:00Z", 6))
    hurry(leading)
    assert is_complete(world)
    assert world.value("SELECT max(upto) FROM ride_minutes") == complete_to(world) == last


def test_marks_fold_and_their_minute_is_computed_once(world: World) -> None:
    leading = lead(world)
    for _ in range(10):
        send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:00:30Z", 1))
        leading.run_once()
    assert (leading.dirty.count, leading.dirty.lowest()) == (1, world.start + 1)
    hurry(leading)
    assert is_complete(world)
    assert (leading.marker.marked, leading.indexer.computed) == (20, 1)


MOMENTS = (RollupStep.AFTER_RESERVATION, RollupStep.AFTER_COMPUTING, RollupStep.AFTER_COMMIT)


@pytest.mark.proves("marked-meanwhile")
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_minute_that_is_marked_while_it_is_computed_is_computed_again(
    world: World, moment: RollupStep
) -> None:
    leading = lead(world)
    send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:01:00Z", 1))
    leading.run_once()

    def mark(step: Enum) -> None:
        if step is moment:
            send_at(world, ("2026-03-01 10:00:30Z", 5))
            leading.run_once()

    with listening(mark):
        leading.indexer.run_once(leading.reader.at.position)
    assert complete_to(world) == world.start + 2  # not the new ride, though it is marked
    assert (leading.dirty.count, leading.dirty.lowest()) == (1, world.start + 3)
    hurry(leading)
    assert is_complete(world)


def test_no_ride_is_complete_that_is_reserved_and_not_computed(world: World) -> None:
    leading = lead(world)
    send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:01:00Z", 1))
    leading.run_once()
    leading.dirty.reserve(1)  # and the second minute is in the producer set
    assert leading.dirty.lowest() == world.start + 1
    leading.dirty.reserve(2)
    assert leading.dirty.lowest() == world.start + 1
    hurry(leading)
    assert is_complete(world)


def test_nothing_is_complete_past_the_checkpoint_though_it_is_marked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A marker adds the minutes of a batch in several steps, in no order."""
    monkeypatch.setattr("consumers.rollup.indexer.LARGEST", 1)
    minutes = [f"2026-03-01 10:0{minute}:00Z" for minute in range(4)]
    send_at(world, *((minute, 1) for minute in minutes))
    leading = lead(world)
    marks = [Mark(minutes[i], world.start + i + 1) for i in (2, 3)]
    leading.dirty.add(marks)
    assert leading.indexer.run_once(leading.reader.at.position)
    assert leading.dirty.lowest() == world.start + 4
    assert complete_to(world) == world.start
    hurry(leading)
    assert is_complete(world)


def test_a_minute_that_takes_long_does_not_hold_up_the_marking(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "SHORT", "60s")
    trigger(world, "slow", "BEFORE INSERT ON ride_minutes", "PERFORM pg_sleep(60); RETURN new;")
    world.send(1)
    leading = lead(world)
    with leading.indexing():
        leading.run_once()
        eventually(lambda: world.value(SLEEPING) == 1)
        for _ in range(3):
            [last] = world.send(1)
            leading.run_once()
            assert leading.reader.at.position == last
        assert world.value(SLEEPING) == 1
        assert not leading.works  # so that a failure goes on being one
    # The lead is over, and did not wait for that minute; nor does the server.
    assert leading.indexer.connection.broken
    eventually(lambda: world.value(SLEEPING) == 0, patience=30)


def test_what_ends_the_indexer_ends_the_lead_and_nothing_counts_as_progress(world: World) -> None:
    """Else one that always fails would be tried again without a pause, each time with a warning."""
    trigger(world, "full_disk", "BEFORE INSERT ON ride_minutes", "RAISE SQLSTATE '53100';")
    idle = lead(world)
    idle.run_once()
    assert not idle.works  # the indexer has done nothing yet
    world.send(1)
    with idle.indexing(), pytest.raises(psycopg.errors.DiskFull):
        eventually(lambda: idle.run_once() is None)
    next_one = lead(world)  # which begins with that ride
    with next_one.indexing(), pytest.raises(psycopg.errors.DiskFull):
        eventually(lambda: next_one.run_once() is None)
    assert not next_one.works


def test_a_rollup_that_is_behind_rests_as_any_reader_does(world: World, clock: Clock) -> None:
    leading = lead(world, batch_size=SMALLEST_BATCH)
    world.send(*range(1, 4 * SMALLEST_BATCH))
    leading.reader._ask = clock.goes(0.01, leading.reader._ask)  # type: ignore[method-assign]
    leading.run_once()
    assert leading.pause == leading.reader.pause == pytest.approx(REST * clock.now)


def test_what_is_lost_of_the_log_is_marked_in_pieces_however_far_apart_the_ids_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker, "PIECE", 3)
    take_at(world, *[(f"2026-03-01 10:{i:02}:00Z", 1) for i in range(7)])
    world.connection.execute(
        "ALTER SEQUENCE log_position NO MAXVALUE RESTART WITH 9007199254740993"
    )
    take_at(world, ("2026-03-01 11:00:00Z", 1))  # 2^53 + 1: no double has it
    drain(world.streamer())
    world.log().start_anew()
    leading = lead(world)
    for upto in (world.start + 3, world.start + 6, 9007199254740993):
        leading.reader.run_once()
        assert leading.reader.at.position == upto
    assert leading.dirty.count == 8
    leading.indexer.run_once(leading.reader.at.position)
    assert is_complete(world)


def test_what_is_complete_stays_so(world: World) -> None:
    """Above 2^53 a mark may have a score below the ride that is complete already."""
    leading = lead(world)
    for upto in (world.start + 5, world.start + 3):
        leading.generation.complete(leading.connection, upto)
        assert leading.generation.complete_to == complete_to(world) == world.start + 5


@pytest.mark.proves("minutes")
def test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.rollup.indexer.LARGEST", 4)
    minutes = [(f"2026-03-{1 + i % 5:02} 10:{i:02}:00Z", i + 1) for i in range(10)]
    send_at(world, *minutes, *minutes)
    leading = lead(world)
    risen = []
    for _ in range(3):
        work(leading)
        risen.append(complete_to(world) - world.start)
    assert risen == [4, 8, 20]
    assert exact(world)


def test_nothing_is_rolled_up_that_the_streamer_has_not_committed(world: World) -> None:
    send_at(world, ("2026-03-01 10:00:00Z", 1))
    take_at(world, ("2026-03-01 10:00:01Z", 2))  # in the same minute, and staged
    hurry(lead(world))
    assert [(rides, int(distance)) for _, rides, distance in kept(world)] == [(1, 1)]
    assert complete_to(world) == world.start + 1
    world.connection.execute("DELETE FROM streamer_state")
    with pytest.raises(StateLost):
        compute(world.connection, lead(world).generation, ["2026-03-01 10:00Z"])


def test_a_minute_whose_rides_are_gone_is_empty(world: World) -> None:
    send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:01:00Z", 1))
    leading = lead(world)
    hurry(leading)
    world.connection.execute("DELETE FROM rides WHERE id = cell_start() + 1")
    compute(world.connection, leading.generation, ["2026-03-01 10:00Z", "2026-03-01 10:01Z"])
    assert exact(world)
    assert world.value("SELECT count(*) FROM ride_minutes WHERE rides = 0") == 1


def compute_anew() -> str:
    """The statement of docs/guarantees.md."""
    [statement] = re.findall(
        r'ARGS="-c \\"(.*rollup_state.*?)\\""',
        (PROJECT / "docs/guarantees.md").read_text(),
        re.DOTALL,
    )
    return str(statement)


def test_everything_can_be_computed_anew_while_no_ride_comes(world: World) -> None:
    """Rides that were changed by hand are in their minutes again."""
    send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:01:00Z", 1))
    leading = lead(world)
    hurry(leading)
    move_one = "UPDATE rides SET created_at = '2026-03-01 10:05Z' WHERE id = cell_start() + 1"
    world.connection.execute(move_one)
    world.connection.execute(compute_anew(), prepare=False)
    with pytest.raises(Overtaken):
        leading.run_once()
    hurry(lead(world))
    assert is_complete(world)


def test_a_total_named_rollup_is_nobodys_marker(world: World) -> None:
    total = world.consumer("rollup")
    world.log().redis.xadd(world.stream, {"not": "a record"})
    world.send(1, 2)
    hurry(lead(world))
    assert is_complete(world)
    assert total.at.position == world.start
    assert catch_up(total) == world.truth
    kinds = world.connection.execute("SELECT consumer_kind FROM malformed_entries ORDER BY 1")
    assert kinds.fetchall() == [("rollup",), ("total",)]
    world.send(3)
    assert catch_up(total) == world.truth
    hurry(lead(world))  # which goes back to ride 2, and alone
    assert world.standing("rollup") == world.truth
    assert is_complete(world)


def plan(world: World, statement: str, values: Params) -> str:
    rows = world.connection.execute(f"EXPLAIN {statement}", values)
    return "\n".join(line for (line,) in rows)


def test_a_minute_is_found_by_the_index_that_costs_inserts_next_to_nothing(world: World) -> None:
    """Without statistics as well; and an INSERT writes as much as it would without the index."""
    for name, value in SESSION.items():
        world.connection.execute(f"SET {name} = {value!r}")
    values: dict[str, object] = {
        "generation": "x",
        "minutes": ["2026-03-01 10:00Z", "2026-03-01 10:01Z"],
    }
    for _ in range(2):
        text = plan(world, COMPUTE, values)
        assert "Bitmap Index Scan on rides_created_at" in text
        assert "rides_pkey" not in text
        asked = {"after": 0, "upto": 1000, "most": 10}
        text = plan(world, marker.MINUTES, asked)
        assert "Index Scan using rides_pkey" in text
        assert "Sort" not in text
        world.send(*[1] * 500)
        world.connection.execute("ANALYZE rides")

    def written() -> tuple[str, ...]:
        insert = "INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 1000)"
        [line] = re.findall(
            r"WAL: .*", plan(world, f"(ANALYZE, WAL, COSTS OFF, TIMING OFF) {insert}", [])
        )[:1]
        return tuple(re.findall(r"records=(\d+)", line))

    world.connection.execute("CHECKPOINT")
    written()
    with_index = written()
    world.connection.execute("DROP INDEX rides_created_at")
    without_index = written()
    assert int(with_index[0]) <= int(without_index[0]) * 1.01


def test_the_process_says_what_it_folded_and_stops_when_asked(world: World) -> None:
    world.service("streamer").says("leading")
    world.take(1, 2, 3)
    right = f"leading; every minute is right up to position {world.start}"
    process = world.service("consumers.rollup").says(right)
    process.says("3 rides marked, ")
    eventually(lambda: is_complete(world))
    assert process.stop() == 0
    assert "WARNING" not in process.output.read_text()
