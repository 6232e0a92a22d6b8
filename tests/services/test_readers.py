"""Who holds the log back: checkpoints and consumer groups, until a cap wins over all of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis

from consumers.receipts.group import Group
from rocket_rides import groups
from rocket_rides.log import START, Log
from streamer import trimming
from streamer.trimming import Caps, Readers, Trimmer
from streamer.upkeep import Alarms
from tests.support.world import World, catch_up, drain, eventually, exact, limited_redis

both = pytest.mark.stream_servers

A_DAY = 86_400.0
ANOTHERS = f"{groups.OURS}-7400000000000000000-16384"

HARDENED = """
    CREATE ROLE hardened;
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO hardened;
    GRANT pg_read_all_settings TO hardened;
    REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC;
    SET ROLE hardened
"""
# What a streamer and a consumer of the version before send, and no more.
BEFORE = """
    evalsha script|load xadd xtrim xread xinfo|stream xlen unlink config|get select ping
    client|setname
"""


def group(world: World, name: str = "workers") -> Group:
    return Group(world.log(), name, "member")


def slowest(world: World, patience: float = A_DAY) -> str:
    return Readers(world.connection, world.log(), patience).slowest()


def send(world: World, rides: int) -> list[str]:
    """Take rides and send them; returns the entries' ids."""
    world.take(*[1] * rides)
    drain(world.streamer())
    return [entry.redis_id for entry in world.log().read(START, 100_000)]


def trim(world: World, length: int = 100_000, age: float = A_DAY) -> int:
    return Trimmer(world.connection, world.log(), Caps(length, age)).trim()


@both
def test_trimming_follows_the_slowest_of_checkpoints_and_groups(world: World) -> None:
    assert slowest(world) == START
    consumer, workers = world.consumer(), group(world)
    workers.make()
    ids = send(world, 1000)
    catch_up(consumer)
    assert slowest(world) == START  # the group has been given nothing
    given = [entry.redis_id for entry in workers.read(600)]
    assert slowest(world) == ids[0]  # all of it is pending
    workers.ack(given[:250] + given[300:])
    assert slowest(world) == given[250]
    assert 0 < trim(world) <= 250
    assert [entry.redis_id for entry in workers.claim(given[250:300], "member").entries] == (
        given[250:300]
    )
    workers.ack(given)
    assert slowest(world) == given[-1]  # nothing is pending: what it was given last
    workers.read(1000)
    workers.ack(ids)
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


@both
def test_a_group_that_is_gone_for_good_can_be_removed(world: World) -> None:
    consumer = world.consumer()
    gone = group(world)
    gone.make()
    send(world, 1000)
    gone.read(1)
    catch_up(consumer)
    assert trim(world) == 0
    # As docs/running.md says.
    world.log().redis.execute_command("XGROUP", "DESTROY", world.stream, gone.name)  # type: ignore[no-untyped-call]
    assert trim(world) >= 900


@both
def test_another_databases_group_holds_nothing_back_once_it_is_idle(world: World) -> None:
    consumer = world.consumer()
    own, anothers = group(world, groups.name_of(world.connection)), group(world, ANOTHERS)
    own.make()
    anothers.make()
    [_, *_, last] = ids = send(world, 10)
    catch_up(consumer)
    own.ack([entry.redis_id for entry in own.read(10)])
    anothers.read(3)

    def idle_ms() -> int:
        [idle] = [g.idle_ms for g in groups.positions(world.log()) if g.name == ANOTHERS]
        return idle or 0

    eventually(lambda: idle_ms() >= 60, "a group that is idle for milliseconds")
    assert slowest(world) == slowest(world, patience=60) == ids[0]
    assert slowest(world, patience=0) == last
    # Our own never stops to count, nor does a group that somebody else named.
    group(world, "workers").make()
    assert slowest(world, patience=0) == START
    world.destroy_group("workers")
    world.destroy_group(own.name)
    own.make()
    assert slowest(world, patience=0) == START
    world.destroy_group(own.name)
    # One that nobody has ever read from is as idle as the entry at which it stands is old.
    world.destroy_group(ANOTHERS)
    anothers.make()
    assert slowest(world) == last
    world.destroy_group(ANOTHERS)
    anothers.make(ids[0])
    assert slowest(world) == ids[0]


@both
def test_entries_that_are_too_old_go_whoever_has_not_read_them(world: World) -> None:
    late, workers = world.consumer(), group(world)
    workers.make()
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


@both
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
    group(world).make()
    streamer = world.service("streamer", STREAM_MAX_AGE="1s").says("leading")
    world.take(*range(1, 301))
    eventually(lambda: world.staged() == 0 and world.log().length() == 0)
    world.take(5)
    eventually(lambda: world.staged() == 0, "the ride is sent")
    assert exact(world)
    assert "WARNING" not in streamer.output.read_text()


@both
def test_where_groups_are_forbidden_the_checkpoints_and_the_caps_are_followed(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = world.consumer()
    group(world).make()
    ids = send(world, 500)
    catch_up(consumer)
    with limited_redis(world, "xpending") as url, Log(url, world.stream) as log:
        assert Readers(world.connection, log, A_DAY).slowest() == ids[-1]
        alarms = Alarms()
        for _ in range(3):
            alarms.look(world.connection, log, 0)
        [warning] = caplog.messages
        assert warning.startswith("trimming does not wait for consumer groups")
        assert Trimmer(world.connection, log, Caps(1000, A_DAY)).trim() >= 300
    with limited_redis(world, "time") as url, Log(url, world.stream) as log:
        [ageless] = trimming.warnings(world.connection, log)
        assert ageless.startswith("entries are kept whatever their age")
        assert Trimmer(world.connection, log, Caps(1000, 0)).trim() == 0


def test_without_the_clusters_identifier_every_group_is_waited_for(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Which of them is our own can't be told then."""
    consumer, anothers = world.consumer(), group(world, ANOTHERS)
    anothers.make()
    send(world, 1)
    catch_up(consumer)
    limited = world.connect()
    limited.execute(HARDENED, prepare=False)
    try:
        assert Readers(limited, world.log(), 0).slowest() == START
        assert Trimmer(limited, world.log(), Caps(1000, A_DAY)).trim() == 0
        alarms = Alarms()
        for _ in range(2):
            alarms.look(limited, world.log(), 1)
        [warning] = caplog.messages
        assert warning.startswith("trimming waits for every consumer group")
    finally:
        limited.execute("RESET ROLE; DROP OWNED BY hardened; DROP ROLE hardened", prepare=False)


@contextmanager
def user_of_before(world: World) -> Iterator[str]:
    """The URL of a Redis user with the rights that were enough for the version before."""
    with redis.Redis.from_url(world.redis.url) as control:
        rights = [f"+{command}" for command in BEFORE.split()]
        control.acl_setuser(
            "before", enabled=True, passwords=["+secret"], keys=["*"], commands=rights
        )
        yield world.redis.url.replace("unix://", "unix://before:secret@")
        control.acl_deluser("before")


@both
def test_a_user_with_the_rights_of_the_version_before_is_enough(world: World) -> None:
    with user_of_before(world) as url:
        world.take(*range(1, 2001))
        streamer = world.service("streamer", REDIS_URL=url, STREAM_MAX_LENGTH="1000")
        world.service("consumers", "consumer0", REDIS_URL=url)
        eventually(lambda: world.standing() == world.truth and world.log().length() < 1200)
        said = streamer.output.read_text()
        assert said.count("trimming does not wait for consumer groups") == 1
        assert said.count("WARNING") == 2  # its age can't be asked either
        assert streamer.stop() == 0
