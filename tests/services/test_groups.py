"""The consumer group that shares out the reading, as both stream servers carry it out."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import redis

from consumers.receipts.group import Group, GroupGone
from rocket_rides import groups
from rocket_rides.log import START, Log
from tests.support.world import World, eventually

pytestmark = pytest.mark.stream_servers

NAME = "workers"
LAST = f"{2**64 - 1}-{2**64 - 1}"  # the greatest id that there is
NEVER = 60.0  # seconds; nothing in a test has been pending for so long


class Member:
    """A member of the group, on a connection of its own."""

    def __init__(self, world: World, name: str) -> None:
        self._log = Log(world.redis.url, world.stream)
        self.group = Group(self._log, NAME, name)

    def make(self) -> bool:
        return self.group.make()

    def read(self, count: int, wait: float = 0) -> list[str]:
        """The ids that it is given."""
        return [entry.redis_id for entry in self.group.read(count, wait)]

    def take_over(self, count: int, idle: float, member: str | None = None) -> list[str]:
        return [entry.redis_id for entry in self.group.take_over(count, idle, member)]

    def acknowledge(self, *ids: str) -> None:
        self.group.acknowledge(ids)

    def leave(self) -> None:
        self.group.leave()

    def close(self) -> None:
        self._log.redis.close()


Members = Callable[..., Member]


@pytest.fixture
def member(world: World) -> Iterator[Members]:
    """Makes members, and closes their connections."""
    with ExitStack() as all_of_them:

        def make(name: str = "one") -> Member:
            found = Member(world, name)
            all_of_them.callback(found.close)
            return found

        yield make


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


def names(world: World) -> set[str]:
    """The members that the server knows."""
    found = world.log().command("XINFO", "CONSUMERS", world.stream, NAME)
    return {facts[1].decode() for facts in found}


def test_each_entry_is_given_to_one_member_and_is_pending_until_it_is_acknowledged(
    world: World, member: Members
) -> None:
    one, two = member("one"), member("two")
    assert (one.make(), two.make()) == (True, False)
    ids = append(world, *range(1, 8))
    [first] = one.group.read(1)
    assert (first.redis_id, first.fields) == (ids[0], [b"n", b"1-0"])
    assert one.read(2) == ids[1:3]
    assert two.read(2) == ids[3:5]
    one.acknowledge(ids[0], ids[3], "99-0")  # whoever has it
    assert pending(world) == {ids[1]: "one", ids[2]: "one", ids[4]: "two"}
    assert one.read(100) == ids[5:]
    assert one.read(1, wait=0.01) == one.read(1) == []


def test_a_group_that_is_made_later_is_given_what_was_there(world: World, member: Members) -> None:
    ids = append(world, 1, 2, 3)
    member().make()
    assert member().read(10) == ids


def test_whoever_waits_is_given_what_comes(world: World, member: Members) -> None:
    waiting = member()
    waiting.make()
    came: list[list[str]] = []
    reader = threading.Thread(target=lambda: came.append(waiting.read(9, wait=4)))
    began = time.monotonic()
    reader.start()
    eventually(lambda: is_waiting(world))
    [entry] = append(world, 1)
    reader.join()
    assert came == [[entry]]
    assert time.monotonic() - began < 4


def test_a_member_takes_over_its_own_entries_at_once_and_others_when_they_are_old(
    world: World, member: Members
) -> None:
    ids = append(world, *range(1, 7))
    one, two = member("one"), member("two")
    one.make()
    one.read(3)
    two.read(3)
    again = member("one")  # its process was started anew
    assert again.take_over(2, 0, "one") == ids[:2]
    assert again.take_over(100, 0, "one") == ids[:3]
    assert again.take_over(100, NEVER) == []
    assert pending(world) == {**dict.fromkeys(ids[:3], "one"), **dict.fromkeys(ids[3:], "two")}
    idle = 0.05
    again.acknowledge(*ids[:2])
    eventually(lambda: min(youngest(world, "one"), youngest(world, "two")) >= idle)
    [entry, *_] = again.group.take_over(100, idle)
    assert (entry.redis_id, entry.fields) == (ids[2], [b"n", b"3-0"])
    assert pending(world) == dict.fromkeys(ids[2:], "one")
    # They are young again, so that nobody else takes them over at once.
    assert two.take_over(100, NEVER) == []


def test_what_was_trimmed_is_acknowledged_and_taken_over_by_nobody(
    world: World, member: Members
) -> None:
    ids = append(world, *range(1, 6))
    one, two = member("one"), member("two")
    one.make()
    one.read(5)
    world.log().redis.xdel(world.stream, ids[1])
    world.log().redis.xtrim(world.stream, minid=ids[1], approximate=False)
    assert two.take_over(100, 0) == ids[2:]
    assert pending(world) == dict.fromkeys(ids[2:], "two")
    world.log().redis.xtrim(world.stream, maxlen=0, approximate=False)
    assert two.take_over(100, 0, "two") == []
    assert pending(world) == {}


def test_a_member_goes_only_when_nothing_is_pending_under_its_name(
    world: World, member: Members
) -> None:
    leaving, other = member("leaving"), member("other")
    leaving.make()
    [entry] = append(world, 1)
    leaving.read(1)
    leaving.leave()
    assert pending(world) == {entry: "leaving"}
    other.take_over(1, 0)
    leaving.leave()
    assert names(world) == {"other"}
    member("nobody").leave()


EVERYTHING: list[Callable[[Member], object]] = [
    lambda member: member.read(1),
    lambda member: member.read(1, wait=0.01),
    lambda member: member.take_over(1, 0),
    lambda member: member.take_over(1, 0, "b"),
    lambda member: member.leave(),
]


@pytest.mark.parametrize("stream", [True, False])
def test_without_the_group_everything_says_that_it_is_gone(
    world: World, member: Members, stream: bool
) -> None:
    if stream:
        append(world, 1)
    workers = member()
    for command in EVERYTHING:
        with pytest.raises(GroupGone, match=r"^Redis"):
            command(workers)
    # Acknowledging is not refused by any server; there is nothing to acknowledge.
    workers.acknowledge("1-0")
    workers.acknowledge()


def is_waiting(world: World) -> bool:
    clients = world.log().command("CLIENT", "LIST")
    return b"cmd=xreadgroup" in clients


def youngest(world: World, member: str) -> float:
    """For how many seconds each entry of a member has been pending, at least."""
    found = world.log().command("XPENDING", world.stream, NAME, "-", "+", 100, member)
    return min(int(idle) for _, _, idle, _ in found) / 1000


def waiting_read(world: World, workers: Member, then: Callable[[], object]) -> tuple[float, bool]:
    """How long a read waits, of at most a second, when `then` happens; whether the group is gone.

    The group is gone too if only the next read says so.
    """
    workers.make()
    gone = []

    def read() -> None:
        try:
            workers.read(1, wait=1)
            workers.read(1)
        except GroupGone:
            gone.append(True)

    began = time.monotonic()
    reading = threading.Thread(target=read)
    reading.start()
    eventually(lambda: is_waiting(world))
    then()
    reading.join()
    return time.monotonic() - began, bool(gone)


def major_version(world: World) -> int:
    with redis.Redis.from_url(world.redis.url) as client:
        return int(client.info("server")["redis_version"].partition(".")[0])


def test_a_waiting_member_learns_that_its_group_is_gone(world: World, member: Members) -> None:
    waited, gone = waiting_read(world, member(), lambda: world.destroy_group(NAME))
    assert gone
    assert waited < 1
    waited, gone = waiting_read(world, member(), lambda: world.log().start_anew())
    assert gone
    # Redis 6.2 wakes nobody when a stream is deleted.
    assert (waited < 1) == (major_version(world) > 6)


def test_a_connection_that_was_lost_is_made_anew(world: World, member: Members) -> None:
    workers = member()
    workers.make()
    ids = append(world, 1)
    workers.read(1)
    world.log().command("CLIENT", "KILL", "TYPE", "normal")
    with pytest.raises(redis.ConnectionError):
        workers.acknowledge(*ids)
    workers.acknowledge(*ids)
    assert pending(world) == {}


def test_the_positions_of_all_groups_are_the_lowest_pending_or_the_last_delivered(
    world: World,
) -> None:
    log = world.log()
    assert groups.positions(log) == []
    ids = append(world, *range(1, 6))
    for name, start, count in (("behind", START, 4), ("done", "2-0", 2)):
        log.command("XGROUP", "CREATE", world.stream, name, start)
        log.command("XREADGROUP", "GROUP", name, "m", "COUNT", count, "STREAMS", world.stream, ">")
    log.command("XACK", world.stream, "behind", ids[0], ids[2])
    log.command("XACK", world.stream, "done", *ids[2:4])
    at = {position.name: position for position in groups.positions(log)}
    assert at["behind"] == ("behind", "2-0", "4-0")
    assert at["done"] == ("done", None, "4-0")


def test_thousands_of_entries_are_taken_over_and_acknowledged_in_one_call(
    world: World, member: Members
) -> None:
    one, two = member("one"), member("two")
    one.make()
    with world.log().redis.pipeline(transaction=False) as pipeline:
        for number in range(1, 9001):
            pipeline.xadd(world.stream, {"n": number}, id=f"{number}-0")
        pipeline.execute()
    ids = one.read(9000)
    assert two.take_over(9000, 0) == ids
    two.acknowledge(*ids)
    assert pending(world) == {}


def test_the_greatest_id_that_there_is_can_be_pending(world: World, member: Members) -> None:
    workers = member()
    workers.make()
    world.log().redis.xadd(world.stream, {"n": 1}, id=LAST)
    assert workers.read(1) == [LAST]
    assert workers.take_over(1, 0) == [LAST]
    assert groups.positions(world.log())[0].first_pending == LAST


def test_another_type_of_key_is_refused_and_kept(world: World, member: Members) -> None:
    world.log().redis.set(world.stream, "mine")
    for command in (*EVERYTHING, Member.make):
        with pytest.raises(redis.ResponseError, match=r"WRONGTYPE|wrong kind") as refused:
            command(member())
        assert refused.type is not GroupGone
    assert world.log().redis.get(world.stream) == b"mine"


def test_a_group_is_named_after_the_cluster_and_the_database(world: World) -> None:
    prefix, cluster, oid = groups.name_of(world.connection).split("-")
    assert prefix == "receipts"
    assert int(oid) == world.value("SELECT oid FROM pg_database WHERE datname = current_database()")
    assert int(cluster) == world.value("SELECT system_identifier FROM pg_control_system()")
