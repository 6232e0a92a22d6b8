"""A change of the program that holds the log: what the next one makes of the folder it is given."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.embedded import stock
from demo.embedded.servers import Redis
from demo.embedded.stream_servers import REDIS, VALKEY, StreamServer
from rocket_rides.log import Record
from tests.support.world import World, drain, eventually, exact

pytestmark = pytest.mark.skipif(
    stock.named(stock.REDIS) is not None, reason="about the two programs that come as packages"
)


@pytest.fixture
def place(world: World, folder: Path) -> Path:
    place = folder / world.stream
    place.mkdir(0o755)
    return place


@contextmanager
def log_held_by(
    kind: StreamServer, world: World, place: Path, *, crash: bool = False
) -> Iterator[None]:
    """A server of this kind on the data in `place` is the world's, until it is stopped."""
    server, shared = Redis(place / "data", place / "run", kind=kind), world.redis
    server.start()
    world.redis = server
    try:
        yield
    finally:
        world.redis = shared
        server.kill() if crash else server.stop()


def rewrite_the_file(world: World) -> None:
    """Have the server replace the commands in its file by a snapshot, as it does by itself."""
    world.log().redis.execute_command("BGREWRITEAOF")  # type: ignore[no-untyped-call]
    file = world.redis.append_only_file
    eventually(lambda: file.read_bytes().startswith(b"REDIS"), "a snapshot")


@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "crashed"])
@pytest.mark.parametrize("rewritten", [False, True], ids=["commands", "a snapshot and commands"])
def test_valkey_takes_over_the_log_of_redis(
    world: World, place: Path, *, crash: bool, rewritten: bool
) -> None:
    with log_held_by(REDIS, world, place, crash=crash):
        world.take(*range(1, 101))
        drain(world.streamer())
        world.consumer(batch_size=40).run_once()
        world.log().trim_to(70, exactly=True)
        if rewritten:
            rewrite_the_file(world)
        world.take(101, 102)
        drain(world.streamer())
        entries, last = world.log().read("0-0", 1000), world.log().last_id()
        assert len(entries) == 72
    with log_held_by(VALKEY, world, place):
        assert world.log().read("0-0", 1000) == entries
        assert world.log().last_id() == last
        consumer = world.consumer()
        news = consumer.run_once().records
        assert [type(each) for each in news] == [Record] * 62  # read, not healed
        world.take(103)
        drain(world.streamer())
        assert exact(world, consumer)


def test_redis_does_not_see_the_log_of_valkey_and_what_is_missing_then_heals(
    world: World, place: Path
) -> None:
    with log_held_by(VALKEY, world, place):
        world.take(*range(1, 101))
        drain(world.streamer())
        world.consumer(batch_size=40).run_once()
    with log_held_by(REDIS, world, place):
        assert world.log().length() == 0
        world.take(101)
        drain(world.streamer())
        assert exact(world)
    with log_held_by(VALKEY, world, place):
        assert world.log().length() == 100  # as it was left
        world.take(102)
        drain(world.streamer())
        assert exact(world)
