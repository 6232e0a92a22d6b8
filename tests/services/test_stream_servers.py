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
def log_held_by(kind: StreamServer, world: World, place: Path) -> Iterator[None]:
    """A server of this kind on the data in `place` is the world's, until it is stopped."""
    server, shared = Redis(place / "data", place / "run", kind=kind), world.redis
    server.start()
    world.redis = server
    try:
        yield
    finally:
        world.redis = shared
        server.stop()


def test_valkey_takes_over_the_log_of_redis_and_the_way_back_begins_with_an_empty_one(
    world: World, place: Path
) -> None:
    with log_held_by(REDIS, world, place):
        world.take(*range(1, 101))
        drain(world.streamer())
        world.consumer(batch_size=40).run_once()
        # The server replaces the commands in its file by a snapshot, as it does by itself.
        world.log().redis.execute_command("BGREWRITEAOF")  # type: ignore[no-untyped-call]
        file = world.redis.append_only_file
        eventually(lambda: file.read_bytes().startswith(b"REDIS"), "a snapshot")
        world.take(101, 102)
        drain(world.streamer())
        entries = world.log().read("0-0", 1000)
    with log_held_by(VALKEY, world, place):
        assert world.log().read("0-0", 1000) == entries
        news = world.consumer().run_once().records
        assert [type(each) for each in news] == [Record] * 62  # read, not healed
    with log_held_by(REDIS, world, place):
        assert world.log().length() == 0
        world.take(103)
        drain(world.streamer())
        assert exact(world)
