"""The consumer that docs/writing-a-consumer.md shows is complete, short, and exact."""

import re
from decimal import Decimal
from pathlib import Path

import psycopg

from rocket_rides.settings import PROJECT
from tests.support.disasters import flush
from tests.support.killed import killed_midway
from tests.support.rollup import take_at
from tests.support.world import Service, World, eventually, exact, take
from unified_log import sessions
from unified_log.repair import repair
from unified_log.streamer import checks

PAGE = PROJECT / "docs/writing-a-consumer.md"
MOST_LINES = 28  # that say something

AT_WORK = "SELECT count(*) FROM pg_stat_activity WHERE starts_with(application_name, %s)"
COUNTED = "SELECT hour::text, rides FROM long_rides WHERE name = %s ORDER BY hour"
TRUE = """
    SELECT date_trunc('hour', created_at AT TIME ZONE 'UTC')::text AS hour, count(*)
    FROM rides WHERE distance > 10000 GROUP BY hour ORDER BY hour
"""


def example() -> str:
    """The handler, which is the second block of Python on the page."""
    _, shown = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(shown)


def test_the_example_is_short() -> None:
    assert len([line for line in example().splitlines() if line]) <= MOST_LINES


def started(world: World, tmp_path: Path, name: str, **settings: str) -> Service:
    Path(tmp_path, "long_rides.py").write_text(example())
    return world.service("long_rides", name, PYTHONPATH=f"{tmp_path}:{PROJECT}", **settings)


def counted(world: World, name: str = "mine") -> list[tuple[str, int]]:
    return world.connection.execute(COUNTED, [name]).fetchall()


def true(world: World) -> list[tuple[str, int]]:
    return world.connection.execute(TRUE).fetchall()


def take_for_hours(world: World, rounds: int = 10) -> None:
    """Rides around 10 km, on both sides of each turn of the hour, in as many transactions."""
    for _ in range(rounds):
        for hour in range(9, 12):
            take_at(
                world,
                (f"2026-03-01 {hour}:00:00Z", "10000.001"),
                (f"2026-03-01 {hour}:59:59.999999Z", "25000"),
                (f"2026-03-01 {hour}:30:00+01:00", "10000"),
                (f"2026-03-01 {hour}:30:00+01:00", "12000.5"),
            )
        world.connection.execute("NOTIFY doorbell")


def test_the_example_counts_each_hour_exactly_through_crashes_and_a_log_that_is_wiped(
    world: World, tmp_path: Path
) -> None:
    world.connection.execute("SET timezone = 'Asia/Kolkata'")  # whose hours are others
    world.service("streamer", DOUBLE_SEND_RATE="0.3").says("leading")
    process = started(world, tmp_path, "mine", BATCH_SIZE="7").says("stands at")
    for _ in range(3):
        with killed_midway(world, process, "long_rides"):
            take_for_hours(world)
        process = started(world, tmp_path, "mine", BATCH_SIZE="7").says("stands at")
    process.kill()
    take_for_hours(world)
    eventually(lambda: not world.staged(), "the rides that are lost unread")
    flush(world)
    process = started(world, tmp_path, "mine", BATCH_SIZE="7")
    process.says("healed a gap in the log")
    take_for_hours(world)
    flush(world)
    eventually(lambda: counted(world) == true(world), "the exact number of each hour")
    assert [rides for _, rides in counted(world)] == [50, 150, 150, 100]
    assert counted(world)[0][0] == "2026-03-01 08:00:00"
    assert process.stop() == 0


def test_the_example_counts_what_a_repair_brings_back(world: World, tmp_path: Path) -> None:
    """A record that the log will never contain, of an hour that it has passed."""
    process = started(world, tmp_path, "mine").says("stands at")
    world.send(10_001)
    eventually(lambda: counted(world) == true(world), "the first ride")
    with psycopg.connect(world.postgres_url, autocommit=True) as ahead:
        world.connection.execute("ALTER SEQUENCE log_position CACHE 3")
        take(ahead, 10_002)
        world.send(10_003)
        take(ahead, 10_004)  # with a number that the log has passed
        world.connection.execute(checks.AS_MIGRATED)
    last = world.send(10_005)[-1]
    process.says(f"up to {last}")
    assert counted(world) != true(world)
    [late], consumers = repair(world.connect())
    assert late < last
    assert consumers == ["long rides mine"]
    process.says("mine starts over")
    eventually(lambda: counted(world) == true(world), "the exact number of each hour")


def test_the_example_leaves_a_total_of_the_same_name_alone(world: World, tmp_path: Path) -> None:
    total = world.consumer("consumer0")
    [ride] = world.send(10_001)
    started(world, tmp_path, "consumer0").says(f"1 record up to {ride}")
    assert world.value(AT_WORK, sessions.reader("total", "consumer0")) == 0
    assert counted(world, "consumer0") == true(world)
    assert world.standing("consumer0") == (world.start, Decimal(0))
    assert exact(world, total)


def test_the_example_goes_with_its_checkpoint(world: World, tmp_path: Path) -> None:
    world.send(10_001)
    world.send(10_002, 10_003)
    flush(world)
    [last] = world.send(10_004)
    # Three of them are in a gap.
    started(world, tmp_path, "mine").says(f"4 records up to {last}").stop()
    assert counted(world) == true(world)
    assert world.service("consumers.remove", "long rides", "mine").ends() == 0
    assert counted(world) == []
