"""The containers' health check: a process is well while it has its session with Postgres."""

import pytest

from tests.world import World, eventually


def status(world: World, name: str, **environment: str) -> int:
    return world.service("rocket_rides.health", name, **environment).process.wait(30)


@pytest.mark.parametrize(
    ("name", "command", "ready"),
    [
        ("streamer", ["streamer"], "leading"),
        ("consumer0", ["consumers", "consumer0"], "stands at"),
    ],
)
def test_a_process_is_well_until_it_ends(
    world: World, name: str, command: list[str], ready: str
) -> None:
    assert status(world, name) == 1
    service = world.service(*command).says(ready)
    assert status(world, name) == 0
    assert service.stop() == 0
    gone = f"SELECT count(*) FROM pg_stat_activity WHERE application_name = '{name}'"
    eventually(lambda: world.value(gone) == 0)
    assert status(world, name) == 1


def test_without_a_database_nobody_is_well(world: World) -> None:
    check = world.service(
        "rocket_rides.health", "streamer", DATABASE_URL="postgresql:///x?host=/nowhere"
    )
    assert check.process.wait(30) == 1
    [line] = check.output.read_text().splitlines()
    assert line.startswith("Postgres can't be reached")
