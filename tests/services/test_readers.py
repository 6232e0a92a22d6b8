"""Who holds the log back: checkpoints and consumer groups, until a cap wins over all of them."""

import pytest

from tests.support.clusters import each_stream_server
from tests.support.world import World, catch_up, eventually, exact
from unified_log.log import START
from unified_log.streamer.trimming import Caps, Trimmer

A_DAY = 86_400.0


class Group:
    """A consumer group of somebody's, with one member."""

    name = "workers"

    def __init__(self, world: World) -> None:
        self._command = world.log().command
        self._stream = world.stream
        self._command("XGROUP", "CREATE", self._stream, self.name, START, "MKSTREAM")

    def read(self, count: int) -> list[str]:
        """Be given so many entries; returns their ids."""
        of = ["GROUP", self.name, "member", "COUNT", count]
        reply = self._command("XREADGROUP", *of, "STREAMS", self._stream, ">")
        return [redis_id.decode() for redis_id, _ in reply[0][1]]

    def acknowledge(self, redis_ids: list[str]) -> None:
        self._command("XACK", self._stream, self.name, *redis_ids)


def slowest(world: World) -> str:
    return Trimmer(world.connection, world.log(), Caps(100_000, A_DAY)).slowest()


def send(world: World, rides: int) -> list[str]:
    """Take rides and send them; returns the entries' ids."""
    world.send(*[1] * rides)
    return [entry.redis_id for entry in world.log().read(START, 100_000)]


def trim(world: World, length: int = 100_000, age: float = A_DAY) -> int:
    return Trimmer(world.connection, world.log(), Caps(length, age)).trim()


@pytest.mark.proves("trimming")
@each_stream_server
def test_trimming_follows_the_slowest_of_checkpoints_and_groups(world: World) -> None:
    assert slowest(world) == START
    consumer, workers = world.consumer(), Group(world)
    ids = send(world, 1000)
    catch_up(consumer)
    assert slowest(world) == START  # the group has been given nothing
    given = workers.read(600)
    assert slowest(world) == ids[0]  # all of it is pending
    workers.acknowledge(given[:250] + given[300:])
    assert slowest(world) == given[250]
    assert 0 < trim(world) <= 250
    workers.acknowledge(given)
    assert slowest(world) == given[-1]  # nothing is pending: what it was given last
    workers.read(1000)
    workers.acknowledge(ids)
    world.connection.execute("DELETE FROM checkpoints")
    assert slowest(world) == ids[-1]  # groups alone are readers too
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('billing', 'daily')")
    assert slowest(world) == START


def test_ids_are_compared_as_numbers(world: World) -> None:
    """As text, 10-0 would come before 9-0, and 9-10 before 9-9."""
    register = "INSERT INTO checkpoints (kind, name, last_redis_id) VALUES ('billing', %s, %s)"
    for redis_id, lowest in (("10-0", "10-0"), ("9-10", "9-10"), ("9-9", "9-9")):
        world.connection.execute(register, [redis_id, redis_id])
        assert slowest(world) == lowest


@each_stream_server
def test_entries_that_are_too_old_go_whoever_has_not_read_them(world: World) -> None:
    late = world.consumer()
    Group(world)
    log = world.log().redis
    log.xadd(world.stream, {"n": 1}, id="1-0")
    log.xadd(world.stream, {"n": 2}, id=f"{world.log().clock() - 86_400_000 - 60_000}-0")
    log.xadd(world.stream, {"n": 3}, id=f"{world.log().clock() - 3_600_000}-0")
    ids = send(world, 500)
    assert trim(world) == 2  # exactly those that are over a day old
    assert world.log().read(START, 1)[0].redis_id == ids[2]
    assert slowest(world) == START
    assert trim(world, age=0) >= 499  # not what was appended in this very millisecond
    assert exact(world, late)


@each_stream_server
def test_a_clock_that_was_set_back_keeps_entries_longer_and_breaks_nothing(world: World) -> None:
    consumer = world.consumer()
    tomorrow = world.log().clock() + 86_400_000
    world.log().redis.xadd(world.stream, {"n": 1}, id=f"{tomorrow}-0")
    ids = send(world, 2000)
    assert min(ids) >= f"{tomorrow}-0"  # Redis goes on from the greatest id
    assert trim(world, age=1) == trim(world, age=10 * 365 * A_DAY) == 0
    assert trim(world, length=1000) >= 900
    assert exact(world, consumer)
    assert trim(world, age=1) > 0
    assert trim(world, age=200 * 365 * A_DAY) == 0  # longer than there has been time


def test_the_leader_drops_what_is_too_old(world: World) -> None:
    world.consumer("gone")
    Group(world)
    streamer = world.service("streamer", STREAM_MAX_AGE="1s").says("leading")
    world.take(*range(1, 301))
    eventually(lambda: world.staged() == 0 and world.log().length() == 0)
    world.take(5)
    eventually(lambda: world.staged() == 0, "the ride is sent")
    assert exact(world)
    assert "WARNING" not in streamer.output.read_text()
