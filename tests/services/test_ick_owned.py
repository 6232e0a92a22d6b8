"""An owned Ick: whatever changes it but its owner, the owner's next operation notices."""

import threading
from collections.abc import Callable

import pytest
from redis import Redis, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from consumers.rollup.ick import Ick, IckLost, OwnedIck, writes_key
from demo.embedded.servers import Redis as Server
from rocket_rides.rollup import ick_keys
from tests.support.clusters import each_stream_server
from tests.support.icks import NOTHING, NewKeys, all_keys, contents, put_back
from tests.support.world import eventually

pytestmark = each_stream_server


def checked(ick: Ick, key: str) -> list[Callable[[], object]]:
    """Every operation that looks before it does anything."""
    return [
        lambda: ick.ickadd(key),
        lambda: ick.ickadd(key, 1, "a", 9, "new"),
        lambda: ick.ickreserve(key, 2),
        lambda: ick.ickcommit(key, "a"),
        lambda: ick.ickexchange(key, 2, "a", backwash=True),
        lambda: ick.ickstats(key),
    ]


def half_done(client: Redis, key: str) -> OwnedIck:
    """The owner of an Ick with one member reserved, and two that wait."""
    ick = OwnedIck(client)
    ick.ickadd(key, 1, "a", 2, "b", 3, "c")
    ick.ickreserve(key, 1)
    return ick


def lose(*which: int) -> Callable[[Redis, str], object]:
    return lambda client, key: client.delete(*(all_keys(key)[i] for i in which))


def older(client: Redis, key: str) -> None:
    """The state before the same number of members in each set, but not the same ones."""
    now = contents(client, key)
    ick = half_done(client, other := f"{key}-other")
    ick.ickcommit(other, "a")  # two operations more
    ick.ickreserve(other, 1)
    ick.ickadd(other, 4, "d")
    then = contents(client, other)
    assert now != then
    put_back(client, key, then)
    client.delete(*all_keys(other))


CHANGES: dict[str, Callable[[Redis, str], object]] = {
    "the version is lost": lose(0),
    "the producer set is lost": lose(1),
    "the consumer set is lost": lose(2),
    "the count is lost": lose(3),
    "all is lost": lose(0, 1, 2, 3),
    "only the count is left": lose(0, 1, 2),
    "both sets are lost": lose(1, 2),
    "another state with sets of the same sizes": older,
    "somebody adds": lambda client, key: Ick(client).ickadd(key, 0, "theirs"),
    "somebody reserves": lambda client, key: Ick(client).ickreserve(key, 2),
    "somebody commits": lambda client, key: Ick(client).ickcommit(key, "a"),
    "somebody deletes it as the gem does": lambda client, key: Ick(client).ickdel(key),
    "its successor deletes it": lambda client, key: OwnedIck(client).ickdel(key),
    "another version": lambda client, key: client.set(key, "ick.v2"),
    "the version is a list": lambda client, key: (client.delete(key), client.lpush(key, "ick.v1")),
    "a set is a string": lambda client, key: client.set(ick_keys(key)[1], "a"),
    "the count is another": lambda client, key: client.incr(writes_key(key)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_operation_notices_a_change_and_changes_nothing_and_so_does_each_after_it(
    client: Redis, new: NewKeys, change: Callable[[Redis, str], object]
) -> None:
    for number in range(len(checked(OwnedIck(client), "any"))):
        key = new()
        ick = half_done(client, key)
        change(client, key)
        changed = contents(client, key)
        with pytest.raises(IckLost, match=f"the Ick at {key} is not as we left it"):
            checked(ick, key)[number]()
        for operation in checked(ick, key):
            with pytest.raises(IckLost):
                operation()
        assert contents(client, key) == changed


def test_what_was_there_before_the_owner_is_refused(client: Redis, new: NewKeys) -> None:
    for number in range(len(checked(OwnedIck(client), "any"))):
        for leave in half_done, lambda client, key: Ick(client).ickadd(key):
            leave(client, key := new())
            before = contents(client, key)
            with pytest.raises(IckLost):
                checked(OwnedIck(client), key)[number]()
            assert contents(client, key) == before


# Each changes something, a few not the sizes of the sets.
STEPS: list[Callable[[Ick, str], object]] = [
    lambda ick, key: ick.ickadd(key),
    lambda ick, key: ick.ickadd(key, 1, "a"),
    lambda ick, key: ick.ickadd(key, 0, "a"),
    lambda ick, key: ick.ickreserve(key, 1),
    lambda ick, key: ick.ickadd(key, 2, "b"),
    lambda ick, key: ick.ickexchange(key, 1, "a"),
    lambda ick, key: ick.ickadd(key, 1, "c"),
    lambda ick, key: ick.ickreserve(key, 1, backwash=True),
    lambda ick, key: ick.ickcommit(key, "c"),
    lambda ick, key: ick.ickadd(key, 1, "b"),
]


def test_an_older_state_that_is_restored_is_noticed_whichever_it_is(
    client: Redis, new: NewKeys
) -> None:
    """Also one with sets as large as they are now."""
    for done in range(1, len(STEPS) + 1):
        for older in range(done):
            ick, key, states = OwnedIck(client), new(), [NOTHING]
            for step in STEPS[:done]:
                step(ick, key)
                states.append(contents(client, key))
            put_back(client, key, states[older])
            with pytest.raises(IckLost):
                ick.ickreserve(key, 1)


def test_each_operation_that_changes_something_counts_as_one(client: Redis, new: NewKeys) -> None:
    ick, key = OwnedIck(client), new()
    for count, step in enumerate(STEPS, start=1):
        step(ick, key)
        assert client.get(writes_key(key)) == str(count).encode()


def test_what_changes_nothing_is_no_write(client: Redis, new: NewKeys) -> None:
    """So a consumer that finds nothing to do costs the append-only file nothing."""
    ick = half_done(client, key := new())
    before = contents(client, key)
    ick.ickadd(key, 5, "b")
    ick.ickreserve(key, 1)
    ick.ickcommit(key, "nobody")
    ick.ickstats(key)
    assert contents(client, key) == before


def test_an_owner_has_many_icks_and_loses_one_at_a_time(client: Redis, new: NewKeys) -> None:
    one, other = new(), new()
    ick = OwnedIck(client)
    ick.ickadd(one, 1, "a")
    ick.ickadd(other, 1, "a")
    client.delete(ick_keys(one)[1])
    with pytest.raises(IckLost):
        ick.ickreserve(one, 1)
    assert ick.ickreserve(other, 1) == [("a", 1.0)]


def test_deleting_asks_nothing_takes_all_keys_and_whoever_goes_on_is_refused(
    client: Redis, new: NewKeys
) -> None:
    for change in CHANGES.values():
        ick = half_done(client, key := new())
        change(client, key)
        with pytest.raises(IckLost):
            ick.ickadd(key, 1, "a")
        held = sum(dump is not None for dump in contents(client, key))
        assert ick.ickdel(key) == held
        with pytest.raises(IckLost):
            ick.ickadd(key, 1, "a")
        with pytest.raises(IckLost):
            ick.size(key)
        assert contents(client, key) == NOTHING


def test_an_operation_without_an_answer_leaves_the_ick_lost_though_it_was_done(
    redis: Server, client: Redis, new: NewKeys
) -> None:
    """It may as well not have been done: the owner can't know, and doesn't guess."""
    key = new()
    with Redis.from_url(
        redis.url, retry=None, single_connection_client=True, socket_timeout=0.3
    ) as deaf:
        ick = half_done(client, key)
        ick.redis = deaf
        assert deaf.connection
        deaf.connection.send_command("CLIENT", "REPLY", "SKIP")  # no answer to the next command
        with pytest.raises(NoAnswer):
            ick.ickadd(key, 4, "d")
        eventually(lambda: client.zscore(ick_keys(key)[1], "d") == 4)
        with pytest.raises(IckLost):
            ick.ickadd(key, 4, "d")


def test_a_full_redis_leaves_an_ick_lost_that_it_would_not_add_to(
    client: Redis, new: NewKeys
) -> None:
    ick = half_done(client, key := new())
    client.config_set("maxmemory", 1)
    try:
        with pytest.raises(ResponseError, match="maxmemory"):
            ick.ickadd(key, 1, "new")
    finally:
        client.config_set("maxmemory", 0)
    with pytest.raises(IckLost):
        ick.ickreserve(key, 1)


def test_an_operation_under_way_is_waited_for_and_not_taken_for_one_that_failed(
    client: Redis, new: NewKeys
) -> None:
    ick, sizes = OwnedIck(client), list[int]()
    ick.ickadd(key := new(), 1, "a")
    adding = threading.Thread(target=lambda: ick.ickadd(key, 2, "b"))
    asking = threading.Thread(target=lambda: sizes.append(ick.size(key)))
    client.client_pause(60_000, all=False)
    try:
        adding.start()
        eventually(ick._lock.locked)
        asking.start()
        asking.join(0.2)  # long enough for who does not wait
    finally:
        client.client_unpause()
        adding.join()
    asking.join()
    assert sizes == [2]


def test_two_threads_share_an_owned_ick(client: Redis, new: NewKeys) -> None:
    """One adds, the other reserves and commits: neither takes the other for somebody else."""
    key, count = new(), 500
    ick, added = OwnedIck(client), threading.Event()
    done: list[tuple[str, float]] = []

    def add() -> None:
        try:
            for number in range(count):
                ick.ickadd(key, number, str(number))
        finally:
            added.set()

    producer = threading.Thread(target=add)
    producer.start()
    reserved: list[tuple[str, float]] = []
    while reserved or not added.is_set():
        reserved = ick.ickexchange(key, 7, *(member for member, _ in reserved))
        done += reserved
    producer.join()
    reserved = ick.ickexchange(key, count)
    done += reserved
    assert ick.ickcommit(key, *(member for member, _ in reserved)) == len(reserved)
    assert done == [(str(number), float(number)) for number in range(count)]
    stats = ick.ickstats(key)
    assert stats
    assert stats["total_size"] == 0
