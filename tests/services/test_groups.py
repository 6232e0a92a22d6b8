"""The consumer group that shares out the reading, as both stream servers carry it out."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis

from consumers.receipts.group import Group, GroupGone, name_of
from tests.support.clusters import each_stream_server
from tests.support.world import PATIENCE, World, eventually
from unified_log import groups
from unified_log.log import START, Log

pytestmark = each_stream_server

NAME = "workers"
LAST = f"{2**64 - 1}-{2**64 - 1}"  # the greatest id that there is
NEVER = 60.0  # seconds; nothing in a test has been pending for so long

Members = Callable[..., Group]


@pytest.fixture
def member(world: World) -> Iterator[Members]:
    """Makes members of the group, each on a connection of its own."""
    with ExitStack() as closing:

        def make(name: str = "one") -> Group:
            return Group(
                closing.enter_context(Log(world.redis.url, world.stream, 2 * PATIENCE)), NAME, name
            )

        yield make


def read(member: Group, count: int) -> list[str]:
    """The ids of the entries that it is given."""
    return [entry.redis_id for entry in member.read(count)]


def take_over(member: Group, count: int, idle: float, of: str | None = None) -> list[str]:
    return [entry.redis_id for entry in member.take_over(count, idle, of)]


def append(world: World, *numbers: int) -> list[str]:
    """Append entries with these ids, such as 5-0; returns them."""
    ids = [f"{number}-0" for number in numbers]
    for redis_id in ids:
        world.log().redis.xadd(world.stream, {"n": redis_id}, id=redis_id)
    return ids


def pending(world: World) -> dict[str, str]:
    """Each pending entry's member."""
    found = world.log().command("XPENDING", world.stream, NAME, "-", "+", 100)
    return {redis_id.decode(): who.decode() for redis_id, who, _, _ in found}


def youngest(world: World) -> float:
    """For how many seconds each pending entry has been, at least."""
    found = world.log().command("XPENDING", world.stream, NAME, "-", "+", 100)
    return min(int(idle) for _, _, idle, _ in found) / 1000


def test_each_entry_is_given_to_one_member_and_is_pending_until_it_is_acknowledged(
    world: World, member: Members
) -> None:
    """A group is given what was there before it was made."""
    ids = append(world, 1, 2, 3)
    one, two = member("one"), member("two")
    one.make()
    two.make()
    ids += append(world, 4, 5, 6, 7)
    [first] = one.read(1)
    assert (first.redis_id, first.fields) == (ids[0], [b"n", b"1-0"])
    assert read(one, 2) == ids[1:3]
    assert read(two, 2) == ids[3:5]
    one.acknowledge([ids[0], ids[3], "99-0"])  # whoever has it
    assert pending(world) == {ids[1]: "one", ids[2]: "one", ids[4]: "two"}
    assert read(one, 100) == ids[5:]
    assert one.read(1, wait=0.01) == one.read(1) == []


def test_a_full_redis_keeps_nobody_from_reading_in_the_group_that_there_is(
    world: World, member: Members
) -> None:
    """Else nothing that a new session had yet to read could be trimmed."""
    ids = append(world, 1, 2)
    member("one").make()
    control, two = world.log().redis, member("two")
    control.config_set("maxmemory", 1)
    try:
        two.make()
        assert read(two, 9) == ids
        two.acknowledge(ids)
    finally:
        control.config_set("maxmemory", 0)


def is_waiting(world: World) -> bool:
    """Whether some member is blocked, whatever others have read before."""
    clients: bytes = world.log().command("CLIENT", "LIST")
    return re.search(rb" flags=\w*b.* cmd=xreadgroup ", clients) is not None


def meanwhile(
    world: World, member: Group, then: Callable[[], object], wait: float = PATIENCE
) -> tuple[bool, list[str]]:
    """Whether a member that waits is woken when `then` happens; and the entries that it is given.

    Or `gone`, perhaps only at the next read, if its group is.
    """
    member.make()
    came: list[str] = []

    def reading() -> None:
        try:
            came.extend(entry.redis_id for entry in member.read(9, wait=wait))
            member.read(1)
        except redis.ResponseError as error:
            came.append("gone" if isinstance(error, GroupGone) else str(error))

    began = time.monotonic()
    thread = threading.Thread(target=reading)
    thread.start()
    eventually(lambda: is_waiting(world))
    then()
    thread.join()
    return time.monotonic() - began < wait, came


def test_a_member_that_waits_is_given_what_comes_or_learns_that_its_group_is_gone(
    world: World, member: Members
) -> None:
    destroyed = meanwhile(world, member(), lambda: world.destroy_group(NAME))
    assert destroyed == (True, ["gone"])
    with redis.Redis.from_url(world.redis.url) as client:
        version = client.info("server")["redis_version"]
    # Redis 6.2 wakes nobody when a stream is deleted.
    wakes = not version.startswith("6.")
    wait = PATIENCE if wakes else 2
    deleted = meanwhile(world, member(), lambda: world.log().start_anew(), wait)
    assert deleted == (wakes, ["gone"])
    assert meanwhile(world, member(), lambda: append(world, 1)) == (True, ["1-0"])


def test_a_member_takes_over_its_own_entries_at_once_and_others_when_they_are_old(
    world: World, member: Members
) -> None:
    ids = append(world, *range(1, 7))
    one, two = member("one"), member("two")
    one.make()
    one.read(3)
    two.read(3)
    again = member("one")  # its process was started anew
    assert take_over(again, 2, 0, "one") == ids[:2]
    assert take_over(again, 100, 0, "one") == ids[:3]
    assert take_over(again, 100, NEVER) == []
    assert pending(world) == {**dict.fromkeys(ids[:3], "one"), **dict.fromkeys(ids[3:], "two")}
    idle = 0.05
    again.acknowledge(ids[:2])
    eventually(lambda: youngest(world) >= idle)
    [entry, *_] = again.take_over(100, idle)
    assert (entry.redis_id, entry.fields) == (ids[2], [b"n", b"3-0"])
    assert pending(world) == dict.fromkeys(ids[2:], "one")
    # They are young again, so that nobody else takes them over at once.
    assert take_over(two, 100, NEVER) == []


def test_what_was_trimmed_is_acknowledged_and_taken_over_by_nobody(
    world: World, member: Members
) -> None:
    ids = append(world, *range(1, 6))
    one, two = member("one"), member("two")
    one.make()
    one.read(5)
    world.log().redis.xdel(world.stream, ids[1])
    world.log().redis.xtrim(world.stream, minid=ids[1], approximate=False)
    assert take_over(two, 100, 0) == ids[2:]
    assert pending(world) == dict.fromkeys(ids[2:], "two")
    world.log().redis.xtrim(world.stream, maxlen=0, approximate=False)
    assert take_over(two, 100, 0, "two") == []
    assert pending(world) == {}


EVERYTHING: list[Callable[[Group], object]] = [
    lambda member: member.read(1),
    lambda member: member.read(1, wait=0.01),
    lambda member: member.take_over(1, 0),
    lambda member: member.take_over(1, 0, "b"),
]


def test_without_the_group_everything_says_that_it_is_gone(world: World, member: Members) -> None:
    """Without a stream, and with one. Acknowledging is refused by no server."""
    for entries in ((), (1,)):
        append(world, *entries)
        for command in EVERYTHING:
            with pytest.raises(GroupGone, match=r"^Redis has no group .*NOGROUP"):
                command(member())
        member().acknowledge(["1-0"])


def test_the_positions_of_all_groups_are_the_lowest_pending_or_the_last_delivered(
    world: World,
) -> None:
    log = world.log()
    assert groups.positions(log) == []
    ids = append(world, *range(1, 6))
    log.redis.xadd(world.stream, {"n": 1}, id=LAST)
    starts = {"lagging": (START, 4), "done": ("2-0", 2), "last": (ids[4], 1)}
    for name, (start, count) in starts.items():
        log.command("XGROUP", "CREATE", world.stream, name, start)
        log.command("XREADGROUP", "GROUP", name, "m", "COUNT", count, "STREAMS", world.stream, ">")
    log.command("XACK", world.stream, "lagging", ids[0], ids[2])
    log.command("XACK", world.stream, "done", *ids[2:4])
    at = {position.name: position for position in groups.positions(log)}
    assert at["lagging"] == ("lagging", "2-0", "4-0")
    assert at["done"] == ("done", None, "4-0")
    assert at["last"] == ("last", LAST, LAST)


def test_a_group_is_named_after_the_cluster_and_the_database(world: World) -> None:
    prefix, cluster, oid = name_of(world.connection).split("-")
    assert prefix == "receipts"
    assert int(oid) == world.value("SELECT oid FROM pg_database WHERE datname = current_database()")
    assert int(cluster) == world.value("SELECT system_identifier FROM pg_control_system()")
