"""The containers' health check: a process is well while it has a session that is at work."""

import itertools
import subprocess
import sys

import pytest

from rocket_rides import sessions
from rocket_rides.health import is_at_work
from rocket_rides.settings import NAME_LENGTH
from tests.support.world import World, eventually, limited_redis

NAMES = [
    "streamer",
    "consumer0",
    "x",
    "x (starting)",
    "x" * NAME_LENGTH,
    "käufer",
    "kåufer",
    "a#b",
    "ü" * NAME_LENGTH,
]
SESSIONS = """
    SELECT pid, application_name FROM pg_stat_activity
    WHERE datname = current_database() AND application_name ~ '^(streamer|rollup|consumer)'
"""


def status(world: World, *arguments: str, **environment: str) -> int:
    return world.service("rocket_rides.health", *arguments, **environment).process.wait(30)


def is_well(world: World, *arguments: str) -> bool:
    return status(world, *arguments) == 0


def sessions_of(world: World) -> list[tuple[int, str]]:
    return world.connection.execute(SESSIONS).fetchall()


def is_well_in_the_end(world: World, *arguments: str) -> None:
    """Wait for the session before the check, which is a process of its own each time."""
    eventually(
        lambda: any(not name.endswith(sessions.STARTING) for _, name in sessions_of(world)),
        "a session that is at work",
    )
    eventually(lambda: is_well(world, *arguments))


@pytest.mark.parametrize(
    ("command", "check"),
    [
        (["streamer"], ["streamer"]),
        (["consumers", "consumer0"], ["consumer", "consumer0"]),
        (["consumers", "x" * NAME_LENGTH], ["consumer", "x" * NAME_LENGTH]),
        (["consumers", "käufer"], ["consumer", "käufer"]),
        (["consumers", "streamer"], ["consumer", "streamer"]),
        (["consumers.rollup"], ["rollup"]),
        (["consumers", "rollup"], ["consumer", "rollup"]),
    ],
    ids=lambda words: "-".join(words)[:20],
)
def test_an_idle_process_is_well_until_it_ends(
    world: World, command: list[str], check: list[str]
) -> None:
    assert not is_well(world, *check)
    service = world.service(*command)
    is_well_in_the_end(world, *check)
    assert service.stop() == 0
    eventually(lambda: sessions_of(world) == [])
    assert not is_well(world, *check)


def test_a_standby_is_well(world: World) -> None:
    leader = world.service("streamer").says("leading")
    world.service("streamer").says("standing by")
    leader.pause()  # so that it has no part in this
    eventually(lambda: sum(name == "streamer" for _, name in sessions_of(world)) == 2)
    assert is_well(world, "streamer")


def test_nobody_is_taken_for_another(world: World) -> None:
    for name in ("streamer", "käufer"):
        world.service("consumers", name)
        eventually(lambda name=name: is_well(world, "consumer", name))  # type: ignore[misc]
    assert not is_well(world, "streamer")
    for other in ("kåufer", "k?ufer", "k??ufer"):
        assert not is_well(world, "consumer", other)


def test_a_process_of_another_database_is_not_taken_for_ours(world: World) -> None:
    world.service("consumers", "consumer0")
    is_well_in_the_end(world, "consumer", "consumer0")
    elsewhere = world.postgres_url.replace(world.stream, "rocket_rides")
    assert status(world, "consumer", "consumer0", DATABASE_URL=elsewhere) == 1


def never_at_work(world: World) -> bool:
    """Whether sessions come and go, two at least, and none of them is ever called at work."""
    seen = set()

    def two_more() -> bool:
        seen.update(sessions_of(world))
        return len({pid for pid, _ in seen}) > 2

    eventually(two_more, "a process that tries again and again")
    return all(name.endswith(sessions.STARTING) for _, name in seen)


@pytest.mark.parametrize("command", [["streamer"], ["consumers", "consumer0"]])
def test_a_process_that_tries_in_vain_is_not_well(world: World, command: list[str]) -> None:
    world.service(*command, REDIS_URL="unix:///nowhere/redis.sock")
    assert never_at_work(world)


def test_a_leader_that_can_send_nothing_is_not_well(world: World) -> None:
    """It gets both its sessions and the lead, and fails with the first batch."""
    world.take(5)
    with limited_redis(world, "xadd") as url:
        world.service("streamer", REDIS_URL=url)
        assert never_at_work(world)


def test_a_process_that_hangs_is_not_well(world: World) -> None:
    """Its session stays, and says nothing any more."""
    service = world.service("consumers", "consumer0")
    session, patience = sessions.consumer("consumer0"), 2.0  # an idle consumer's rounds take 0.5 s
    eventually(lambda: is_at_work(world.connection, session, patience))
    service.pause()
    eventually(lambda: not is_at_work(world.connection, session, patience))
    assert is_at_work(world.connection, session)  # for a while
    service.resume()
    eventually(lambda: is_at_work(world.connection, session, patience))


def test_no_two_sessions_share_a_name_and_postgres_keeps_them_as_they_are(world: World) -> None:
    names = [sessions.STREAMER, *map(sessions.consumer, NAMES)]
    for one, other in itertools.combinations(names, 2):
        assert one != other
    for name in names:
        for shown in (name, sessions.starting(name)):
            world.connection.execute("SELECT set_config('application_name', %s, false)", [shown])
            [kept] = world.connection.execute("SHOW application_name").fetchone() or [""]
            assert kept == shown


@pytest.mark.parametrize("words", [["consumer"], ["streamer", "one"]])
def test_a_name_is_given_where_there_are_many(words: list[str]) -> None:
    asked = subprocess.run(
        [sys.executable, "-m", "rocket_rides.health", *words], capture_output=True, text=True
    )
    assert asked.returncode == 2
    assert "only consumer and receipts take a name" in asked.stderr


def test_without_a_database_nobody_is_well(world: World) -> None:
    check = world.service(
        "rocket_rides.health", "streamer", DATABASE_URL="postgresql:///x?host=/nowhere"
    )
    assert check.process.wait(30) == 1
    [line] = check.output.read_text().splitlines()
    assert line.startswith("Postgres can't be reached")
