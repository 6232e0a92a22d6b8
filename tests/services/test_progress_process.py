"""While nothing works, a process says why, and nothing that sounds as if it did."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.world import World, eventually, limited_redis

ATTEMPTS = 4


def terms_begun(world: World) -> int:
    """How often a streamer has taken the lead without committing anything."""
    return world.value("SELECT coalesce(max(cardinality(void)), 0) FROM terms")


@contextmanager
def read_only(world: World) -> Iterator[None]:
    control = world.log().redis
    control.execute_command("REPLICAOF", "127.0.0.1", "1")  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        control.execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]


def test_a_streamer_says_once_that_it_leads_however_often_it_tries(world: World) -> None:
    """The warnings about durability, too; and again when it really leads once more."""
    control = world.log().redis
    control.config_set("appendfsync", "everysec")
    streamer = world.service("streamer").says("leading")
    try:
        with read_only(world):
            world.take(1)
            before = terms_begun(world)
            eventually(lambda: terms_begun(world) >= before + ATTEMPTS, "more attempts")
            said = streamer.output.read_text()
            assert said.count("leading;") == 1
            assert said.count("appendfsync everysec") == 1
            assert "trying again until it works" in said
    finally:
        control.config_set("appendfsync", "always")
    eventually(lambda: world.staged() == 0)
    eventually(lambda: streamer.output.read_text().count("leading;") == 2)


@pytest.mark.stream_servers
def test_a_streamer_that_may_not_send_says_why(world: World) -> None:
    """Each server says it in its own words."""
    world.take(1)
    with limited_redis(world, "xadd") as url:
        before = terms_begun(world)
        streamer = world.service("streamer", REDIS_URL=url).says("trying again until it works")
        eventually(lambda: terms_begun(world) >= before + ATTEMPTS, "more attempts")
        said = streamer.output.read_text()
        assert said.count("leading;") == 1
        assert "Redis refuses to append" in said
