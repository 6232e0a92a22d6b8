"""The consumer that docs/writing-a-consumer.md shows is complete, short, and right."""

import re
from decimal import Decimal
from pathlib import Path

from rocket_rides.settings import PROJECT
from tests.support.world import Service, World, drain, eventually, exact

PAGE = PROJECT / "docs/writing-a-consumer.md"
MOST_LINES = 40


def example() -> str:
    """The first block of Python on the page."""
    shown = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert shown
    return shown[1]


def test_the_example_is_short() -> None:
    assert len(example().splitlines()) <= MOST_LINES


def started(world: World, tmp_path: Path, name: str) -> Service:
    Path(tmp_path, "longest.py").write_text(example())
    return world.service("longest", name, PYTHONPATH=f"{tmp_path}:{PROJECT}")


def longest(world: World) -> Decimal:
    [(distance,)] = world.connection.execute("SELECT distance FROM longest_rides").fetchall()
    return Decimal(distance)


def test_the_example_runs_heals_a_gap_and_goes_on_after_a_kill(
    world: World, tmp_path: Path
) -> None:
    world.take(5, 999, 7)
    drain(world.streamer())
    world.log().redis.delete(world.stream)  # the rides so far are a gap
    process = started(world, tmp_path, "mine").says("healed a gap in the log: 3 rides")
    assert longest(world) == 999
    process.kill()
    world.take(1000)
    drain(world.streamer())
    started(world, tmp_path, "mine").says("1 ride up to 4")
    eventually(lambda: longest(world) == 1000)


def test_the_example_leaves_a_total_of_the_same_name_alone(world: World, tmp_path: Path) -> None:
    total = world.consumer("consumer0")
    world.take(5)
    drain(world.streamer())
    started(world, tmp_path, "consumer0").says("1 ride up to 1")
    assert longest(world) == 5
    assert world.standing("consumer0") == (0, Decimal(0))
    assert exact(world, total)


def test_the_example_stops_without_its_row(world: World, tmp_path: Path) -> None:
    process = started(world, tmp_path, "mine").says("stands at")
    world.connection.execute("DELETE FROM longest_rides")
    world.take(5)
    drain(world.streamer())
    process.says("mine has a checkpoint, but no longest ride")
    assert world.value("SELECT last_ride_id FROM checkpoints WHERE name = 'mine'") == 0
