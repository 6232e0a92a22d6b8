"""The commands of consumer groups, as both stream servers carry them out."""

import threading
import time
from collections.abc import Callable

import pytest
import redis

from consumers.receipts.group import Group, GroupGone
from rocket_rides import groups
from rocket_rides.log import START
from tests.support.world import World, eventually

pytestmark = pytest.mark.stream_servers

GREATEST = 2**64 - 1


def group(world: World, member: str = "a") -> Group:
    return Group(world.log(), "workers", member)


def append(world: World, *numbers: int) -> list[str]:
    """Append entries with these ids, such as 5-0; returns them."""
    ids = [f"{number}-0" for number in numbers]
    for redis_id in ids:
        world.log().redis.xadd(world.stream, {"n": redis_id}, id=redis_id)
    return ids


def pending(group: Group) -> dict[str, tuple[str, int]]:
    """Each pending entry's member and number of deliveries."""
    return {p.redis_id: (p.member, p.deliveries) for p in group.pending(100)}


def test_each_entry_is_given_to_one_member_and_is_pending_until_it_is_acknowledged(
    world: World,
) -> None:
    one, two = group(world, "one"), group(world, "two")
    assert (one.make(), two.make()) == (True, False)
    ids = append(world, *range(1, 8))
    assert [entry.redis_id for entry in one.unread(2, "1-0")] == ids[1:3]
    assert [entry.fields for entry in one.read(3)] == [[b"n", id_.encode()] for id_ in ids[:3]]
    assert [entry.redis_id for entry in two.read(2)] == ids[3:5]
    assert [entry.redis_id for entry in two.unread(10)] == ids[5:]
    assert [p.redis_id for p in one.pending(2, "1-0", one.member)] == ids[1:3]
    assert [p.redis_id for p in one.pending(2, after="2-0")] == ids[2:4]
    assert one.pending(10, min_idle_ms=60_000) == []
    assert one.ack([ids[0], ids[3], "99-0"]) == 2  # whoever has it
    assert pending(one) == {ids[1]: ("one", 1), ids[2]: ("one", 1), ids[4]: ("two", 1)}
    assert {member.name: member.pending for member in one.members()} == {"one": 2, "two": 1}
    assert one.read(100) != []
    assert one.read(1, wait=0.01) == one.read(1) == one.unread(1) == []


def test_a_group_that_is_made_later_starts_where_it_is_told(world: World) -> None:
    ids = append(world, 1, 2, 3)
    workers = group(world)
    workers.make("2-0")
    assert workers.last_delivered() == "2-0"
    assert [entry.redis_id for entry in workers.read(10)] == ids[2:]


def test_a_claim_takes_what_is_still_the_other_members_and_says_what_is_gone(
    world: World,
) -> None:
    dead, alive, third = (group(world, name) for name in ("dead", "alive", "third"))
    dead.make()
    ids = append(world, *range(1, 6))
    dead.read(5)
    world.log().redis.xdel(world.stream, ids[1])
    third.claim([ids[2]], "dead")
    assert alive.claim(ids, "dead", min_idle_ms=60_000) == ([], [])
    claimed = alive.claim([*ids, "99-0"], "dead")
    assert [entry.redis_id for entry in claimed.entries] == [ids[0], ids[3], ids[4]]
    assert claimed.entries[0].fields == [b"n", b"1-0"]
    assert claimed.gone == [ids[1]]
    # A claim is a delivery; what is gone is not pending any more.
    assert pending(alive) == {
        ids[0]: ("alive", 2),
        ids[2]: ("third", 2),
        ids[3]: ("alive", 2),
        ids[4]: ("alive", 2),
    }
    # A worker that was started again under its name takes up what it had.
    assert len(alive.claim(ids, "alive").entries) == 3


def test_a_heartbeat_renews_what_is_still_ours_and_takes_nothing_back(world: World) -> None:
    slow, other = group(world, "slow"), group(world, "other")
    slow.make()
    ids = append(world, 1, 2, 3, 4)
    slow.read(4)
    other.claim([ids[0]], "slow")
    slow.ack([ids[1]])
    idle = eventually(lambda: [p for p in slow.pending(9, member=slow.member) if p.idle_ms >= 30])
    assert slow.keep([*ids, "99-0"]) == ids[2:]
    assert {p.redis_id: p.deliveries for p in slow.pending(9, member=slow.member)} == {
        ids[2]: 1,
        ids[3]: 1,
    }
    assert min(p.idle_ms for p in idle) > max(
        p.idle_ms for p in slow.pending(9, member=slow.member)
    )
    assert pending(slow)[ids[0]] == ("other", 2)


def test_a_member_goes_only_when_nothing_is_pending_under_its_name(world: World) -> None:
    gone, other = group(world, "gone"), group(world, "other")
    gone.make()
    [entry] = append(world, 1)
    gone.read(1)
    assert not other.remove_member("gone")
    assert pending(other) == {entry: ("gone", 1)}
    other.claim([entry], "gone")
    assert other.remove_member("gone")
    assert other.remove_member("nobody")
    assert [member.name for member in other.members()] == ["other"]


EVERYTHING: list[Callable[[Group], object]] = [
    lambda workers: workers.read(1),
    lambda workers: workers.read(1, wait=0.01),
    lambda workers: workers.pending(1),
    lambda workers: workers.pending(1, member=workers.member),
    lambda workers: workers.claim(["1-0"], "b"),
    lambda workers: workers.keep(["1-0"]),
    lambda workers: workers.members(),
    lambda workers: workers.remove_member("b"),
    lambda workers: workers.last_delivered(),
    lambda workers: workers.unread(1),
]


@pytest.mark.parametrize("stream", [True, False])
def test_without_the_group_everything_says_that_it_is_gone(world: World, stream: bool) -> None:
    if stream:
        append(world, 1)
    workers = group(world)
    for command in EVERYTHING:
        with pytest.raises(GroupGone, match=r"^Redis"):
            command(workers)
    # Acknowledging is not refused by any server; there is nothing to acknowledge.
    assert (workers.ack(["1-0"]), workers.ack([])) == (0, 0)


def waiting_read(world: World, then: Callable[[], object]) -> tuple[float, bool]:
    """How long a read waits, of at most a second, when `then` happens; whether the group is gone.

    The group is gone too if only the next read says so.
    """
    workers = group(world)
    workers.make()
    clients = world.log().redis
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
    eventually(lambda: b"cmd=xreadgroup" in clients.execute_command("CLIENT", "LIST"))  # type: ignore[no-untyped-call]
    then()
    reading.join()
    return time.monotonic() - began, bool(gone)


def major_version(world: World) -> int:
    with redis.Redis.from_url(world.redis.url) as client:
        return int(client.info("server")["redis_version"].partition(".")[0])


def test_a_waiting_member_learns_that_its_group_is_gone(world: World) -> None:
    waited, gone = waiting_read(world, lambda: world.destroy_group(group(world).name))
    assert gone
    assert waited < 1
    waited, gone = waiting_read(world, lambda: world.log().start_anew())
    assert gone
    # Redis 6.2 wakes nobody when a stream is deleted.
    assert (waited < 1) == (major_version(world) > 6)


def test_the_positions_of_all_groups_are_the_lowest_pending_or_the_last_delivered(
    world: World,
) -> None:
    log = world.log()
    assert groups.positions(log) == []
    ids = append(world, *range(1, 6))
    for name, start in (("behind", START), ("done", "2-0")):
        Group(log, name, "m").make(start)
    behind, done = Group(log, "behind", "m"), Group(log, "done", "m")
    behind.read(4)
    behind.ack([ids[0], ids[2]])
    done.ack([entry.redis_id for entry in done.read(2)])
    at = {position.name: position for position in groups.positions(log)}
    assert at["behind"] == ("behind", "2-0", "4-0")
    assert at["done"] == ("done", None, "4-0")


def test_thousands_of_ids_are_claimed_and_kept_in_one_call(world: World) -> None:
    one, two = group(world, "one"), group(world, "two")
    one.make()
    with world.log().redis.pipeline(transaction=False) as pipeline:
        for number in range(1, 9001):
            pipeline.xadd(world.stream, {"n": number}, id=f"{number}-0")
        pipeline.execute()
    ids = [entry.redis_id for entry in one.read(9000)]
    assert len(two.claim(ids, "one").entries) == len(two.keep(ids)) == two.ack(ids) == 9000


def test_the_greatest_id_that_there_is_can_be_pending(world: World) -> None:
    workers = group(world)
    workers.make()
    last = f"{GREATEST}-{GREATEST}"
    world.log().redis.xadd(world.stream, {"n": 1}, id=last)
    assert [entry.redis_id for entry in workers.read(1)] == [last]
    assert [p.redis_id for p in workers.pending(1, after=f"{GREATEST}-{GREATEST - 1}")] == [last]
    assert workers.pending(1, after=last) == []
    assert workers.unread(1) == []
    assert groups.positions(world.log())[0].first_pending == last


def test_another_type_of_key_is_refused_and_kept(world: World) -> None:
    world.log().redis.set(world.stream, "mine")
    for command in (*EVERYTHING, Group.make):
        with pytest.raises(redis.ResponseError, match=r"WRONGTYPE|wrong kind"):
            command(group(world))
    assert world.log().redis.get(world.stream) == b"mine"


def test_a_group_is_named_after_the_cluster_and_the_database(world: World) -> None:
    prefix, cluster, oid = groups.name_of(world.connection).split("-")
    assert prefix == "receipts"
    assert int(oid) == world.value("SELECT oid FROM pg_database WHERE datname = current_database()")
    assert int(cluster) == world.value("SELECT system_identifier FROM pg_control_system()")
