"""The consumer that docs/writing-a-consumer.md shows is complete, short, and right."""

import re
from decimal import Decimal
from pathlib import Path

from rocket_rides.settings import PROJECT
from tests.support.world import World, drain, eventually

PAGE = PROJECT / "docs/writing-a-consumer.md"
MOST_LINES = 40


def example() -> str:
    """The first block of Python on the page."""
    shown = re.search(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert shown
    return shown[1]


def test_the_example_is_short() -> None:
    assert len(example().splitlines()) <= MOST_LINES


def test_the_example_runs_heals_a_gap_and_goes_on_after_a_kill(
    world: World, tmp_path: Path
) -> None:
    def longest() -> Decimal:
        [(distance,)] = world.connection.execute("SELECT distance FROM longest_rides").fetchall()
        return Decimal(distance)

    Path(tmp_path, "longest.py").write_text(example())
    where = {"PYTHONPATH": f"{tmp_path}:{PROJECT}"}
    world.take(5, 999, 7)
    drain(world.streamer())
    world.log().redis.delete(world.stream)  # the rides so far are a gap
    process = world.service("longest", "mine", **where).says("healed a gap in the log: 3 rides")
    assert longest() == 999
    process.kill()
    world.take(1000)
    drain(world.streamer())
    world.service("longest", "mine", **where).says("1 ride up to 4")
    eventually(lambda: longest() == 1000)
