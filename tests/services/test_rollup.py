"""The rollup: every minute is right for all rides up to `complete_to`; dirty minutes fold."""

import re
import threading

import pytest
import redis
from psycopg.abc import Params

from consumers.reader import REST, SMALLEST_BATCH
from consumers.rollup import marker
from consumers.rollup.dirty import DirtyMinutes, Mark
from consumers.rollup.minutes import COMPUTE, SESSION, compute
from rocket_rides.settings import PROJECT
from rocket_rides.terms import StateLost
from tests.support.clock import Clock
from tests.support.rollup import (
    complete_to,
    exact,
    hurry,
    ick,
    icks,
    is_complete,
    kept,
    lead,
    send,
    send_at,
    take_at,
)
from tests.support.world import World, catch_up, drain, eventually, limited_redis, transaction


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
    send(world, 6)
    hurry(leading)
    assert is_complete(world)
    assert complete_to(world) == 6


def test_a_minute_that_was_marked_often_is_computed_once(world: World) -> None:
    leading = lead(world, batch_size=10)
    streamer = world.streamer()
    for _ in range(10):
        world.take(*[1] * 10)
        drain(streamer)
        leading.reader.run_once()
    hurry(leading)
    assert is_complete(world)
    assert leading.marker.marked == 100
    assert leading.indexer.computed <= 2  # in a test that runs through the turn of a minute


def test_rides_gather_for_a_while_before_their_minute_is_computed_again(world: World) -> None:
    leading = lead(world)
    streamer = world.streamer()
    for _ in range(3):
        world.take(1)
        drain(streamer)
        leading.run_once()
    assert leading.pause > 0
    assert complete_to(world) == 1
    hurry(leading)
    assert is_complete(world)


def test_a_rollup_that_is_behind_rests_as_any_reader_does(world: World, clock: Clock) -> None:
    leading = lead(world, batch_size=SMALLEST_BATCH)
    world.take(*range(1, 4 * SMALLEST_BATCH))
    drain(world.streamer())
    leading.reader._ask = clock.goes(0.01, leading.reader._ask)  # type: ignore[method-assign]
    leading.run_once()
    assert leading.pause == leading.reader.pause == pytest.approx(REST * clock.now)


def test_what_is_lost_of_the_log_is_marked_in_pieces_however_far_apart_the_ids_are(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marker, "PIECE", 3)
    take_at(world, *[(f"2026-03-01 10:{i:02}:00Z", 1) for i in range(7)])
    world.connection.execute("ALTER SEQUENCE log_position RESTART WITH 9007199254740993")
    take_at(world, ("2026-03-01 11:00:00Z", 1))  # 2^53 + 1: no double has it
    drain(world.streamer())
    world.log().start_anew()
    leading = lead(world)
    for upto in (3, 6, 9007199254740993):
        leading.reader.run_once()
        assert leading.reader.at.ride_id == upto
    assert leading.dirty.count == 8
    leading.indexer.run_once(leading.reader.at.ride_id)
    assert is_complete(world)


def test_the_lowest_score_is_never_above_the_lowest_ride(world: World) -> None:
    """A double has 53 bits: rounding up would make `complete_to` too high."""
    dirty = DirtyMinutes(world.log(), "0" * 16)
    for ride in (2**63 - 1, 2**53 + 1, 2**53 - 1, 1):
        dirty.add([Mark(f"minute of {ride}", ride)])
        lowest = dirty.lowest()
        assert lowest is not None
        assert ride - 1024 < lowest <= ride
        assert ride > 2**53 or lowest == ride


def test_a_dirty_minute_is_not_right_from_its_first_ride_on(world: World) -> None:
    first, _ = send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:00:30Z", 2))
    leading = lead(world)
    leading.reader.run_once()
    assert leading.dirty.lowest() == first


def test_a_minute_says_up_to_which_ride_it_was_counted(world: World) -> None:
    leading = lead(world)
    for _ in range(2):
        [ride] = send_at(world, ("2026-03-01 10:00:00Z", 1))
        hurry(leading)
        assert world.value("SELECT upto FROM ride_minutes") == ride


def test_what_is_complete_stays_so(world: World) -> None:
    """Above 2^53 a mark may have a score below the ride that is complete already."""
    leading = lead(world)
    for upto in (5, 3):
        leading.generation.complete(upto)
        assert leading.generation.complete_to == complete_to(world) == 5


@pytest.mark.proves("minutes")
def test_a_backlog_of_many_minutes_is_computed_in_steps_and_complete_to_rises_with_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumers.rollup.indexer.AT_ONCE", 4)
    send_at(world, *[(f"2026-03-{1 + i % 5:02} 10:{i:02}:00Z", i + 1) for i in range(10)])
    leading = lead(world)
    risen = []
    for _ in range(3):
        leading._due = 0
        leading.run_once()
        risen.append(complete_to(world))
    assert risen == [4, 8, 10]
    assert exact(world)


def test_nothing_is_rolled_up_that_the_streamer_has_not_committed(world: World) -> None:
    send_at(world, ("2026-03-01 10:00:00Z", 1))
    take_at(world, ("2026-03-01 10:00:01Z", 2))  # in the same minute, and staged
    hurry(lead(world))
    assert [(rides, int(distance)) for _, rides, distance in kept(world)] == [(1, 1)]
    assert complete_to(world) == 1
    world.connection.execute("DELETE FROM streamer_state")
    with pytest.raises(StateLost):
        compute(world.connection, lead(world).generation, ["2026-03-01 10:00Z"])


def test_a_minute_whose_rides_are_gone_is_empty(world: World) -> None:
    send_at(world, ("2026-03-01 10:00:00Z", 1), ("2026-03-01 10:01:00Z", 1))
    leading = lead(world)
    hurry(leading)
    world.connection.execute("DELETE FROM rides WHERE id = 1")
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
    process = world.service("consumers.rollup").says("leading")
    eventually(lambda: is_complete(world))
    world.connection.execute("UPDATE rides SET created_at = '2026-03-01 10:05Z' WHERE id = 1")
    world.connection.execute(compute_anew(), prepare=False)
    eventually(lambda: is_complete(world), patience=10)
    assert process.stop() == 0


def test_computing_everything_anew_waits_for_a_computation_without_a_deadlock(world: World) -> None:
    """It takes its locks in the same order: rollup_state, and then minutes."""
    send_at(world, ("2026-03-01 10:00:00Z", 1))
    hurry(lead(world))
    with transaction(world) as computing:
        computing.execute("SELECT FROM rollup_state FOR SHARE")
        asking = world.connect()
        thread = threading.Thread(target=lambda: asking.execute(compute_anew(), prepare=False))
        thread.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        eventually(lambda: world.value(waiting) == 1)
        computing.execute("UPDATE ride_minutes SET upto = upto")
        computing.commit()
        thread.join()
    assert (kept(world), complete_to(world)) == ([], 0)


def test_a_total_named_rollup_is_nobodys_marker(world: World) -> None:
    total = world.consumer("rollup")
    world.log().redis.xadd(world.stream, {"not": "a record"})
    send(world, 1, 2)
    leading = lead(world)
    hurry(leading)
    assert total.at.ride_id == 0
    assert catch_up(total) == world.truth
    assert is_complete(world)
    found = world.connection.execute(
        "SELECT kind, name, last_ride_id FROM checkpoints ORDER BY kind"
    )
    assert found.fetchall() == [("rollup", "rollup", 2), ("total", "rollup", 2)]
    letters = world.connection.execute("SELECT consumer_kind FROM dead_letters ORDER BY 1")
    assert letters.fetchall() == [("rollup",), ("total",)]
    world.connection.execute("DELETE FROM checkpoints WHERE kind = 'total'")
    assert world.value("SELECT count(*) FROM consumer_states") == 0
    total = world.consumer("rollup")
    send(world, 3)
    assert catch_up(total) == world.truth
    hurry(lead(world))  # which goes back to ride 2, and alone
    assert world.standing("rollup") == world.truth
    assert is_complete(world)


def test_each_lead_deletes_the_ick_of_the_one_before_and_no_other(world: World) -> None:
    world.log().redis.set(f"{world.stream}/rollup/of-another-database", "ick.v1")
    first = lead(world)
    assert icks(world) == {first.generation.name, "of-another-database"}
    second = lead(world)
    assert icks(world) == {second.generation.name, "of-another-database"}
    assert ick(world).endswith(second.generation.name)
    world.log().redis.delete(f"{world.stream}/rollup/of-another-database")


def test_a_user_of_redis_who_may_not_ask_for_its_replication_id_rolls_up_all_the_same(
    world: World,
) -> None:
    with limited_redis(world, "info") as url:
        process = world.service("consumers.rollup", REDIS_URL=url).says("leading")
        send(world, 1)
        eventually(lambda: is_complete(world))
        assert process.stop() == 0


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
        send(world, *[1] * 500)
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


def test_a_redis_that_is_full_delays_minutes_and_loses_none(world: World) -> None:
    send(world, 1)
    control = world.log()
    leading = lead(world)
    try:
        control.command("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(redis.ResponseError, match="maxmemory"):
            hurry(leading)
    finally:
        control.command("CONFIG", "SET", "maxmemory", "0")
    hurry(lead(world))
    assert is_complete(world)


def test_the_process_says_what_it_folded_and_stops_when_asked(world: World) -> None:
    world.service("streamer").says("leading")
    world.take(1, 2, 3)
    process = world.service("consumers.rollup").says("leading; every minute is right up to ride 0")
    process.says("3 rides rolled up, by ")
    eventually(lambda: is_complete(world))
    assert process.stop() == 0
    assert "WARNING" not in process.output.read_text()
