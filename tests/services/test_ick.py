"""The Ick, operation by operation: what the gem's documentation and script say, and ours beyond."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis, ResponseError

from consumers.rollup.ick import Ick, OwnedIck
from demo.embedded.servers import Redis as Server
from rocket_rides.rollup import ick_keys
from tests.support.clusters import each_stream_server
from tests.support.icks import NOTHING, NewKeys, all_keys, contents, sizes
from tests.support.world import PATIENCE

pytestmark = each_stream_server

CLIENTS: list[dict[str, Any]] = [
    {"protocol": 2},
    {"protocol": 3},
    {"protocol": 2, "decode_responses": True},
    {"protocol": 3, "decode_responses": True, "encoding": "latin-1"},
]


class Recording(Redis):
    """A client that remembers what it sent."""

    sent: list[tuple[Any, ...]]

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        self.sent = [*getattr(self, "sent", []), arguments]
        return super().execute_command(*arguments, **options)  # type: ignore[no-untyped-call]


@pytest.fixture
def client(redis: Server) -> Iterator[Recording]:
    with Recording.from_url(redis.url, retry=None, socket_timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def ick(client: Recording) -> Ick:
    return Ick(client)


def every_operation(ick: Ick, key: str) -> list[Callable[[], object]]:
    """Those that make an Ick come first."""
    return [
        lambda: ick.ickadd(key),
        lambda: ick.ickadd(key, 1, "a", 0, "z"),
        lambda: ick.ickreserve(key, 2),
        lambda: ick.ickreserve(key, 2, backwash=True),
        lambda: ick.ickcommit(key, "a"),
        lambda: ick.ickexchange(key, 2, "a", backwash=True),
        lambda: ick.ickstats(key),
        lambda: ick.ickdel(key),
    ]


MAKING = 6  # of these make it


def test_a_story_through_every_kind_of_client(redis: Server, new: NewKeys) -> None:
    for options in CLIENTS:
        with Redis.from_url(redis.url, retry=None, **options) as client:
            for ick, keys in (Ick(client), 3), (OwnedIck(client), 4):
                tell(ick, new(), keys)
                ick.ickadd(key := new(), 1, "a", 2, "b")
                ick.ickreserve(key, 1)
                assert ick.ickdel(key) == keys


def tell(ick: Ick, key: str, keys: int) -> None:
    assert ick.ickstats(key) is None
    assert ick.ickadd(key, 12.5, "b", 5, "ä", 20, "c") == (3, 0)
    assert ick.ickadd(key, 30, "c", 20, "c", 4, "ä", 0.5, "ä", 9, "d", 8, "d") == (1, 3)
    assert ick.ickreserve(key) == []
    assert ick.ickreserve(key, 2) == [("ä", 0.5), ("d", 8.0)]
    # No more than asked for, though more is reserved.
    assert (ick.ickreserve(key, 1), ick.ickreserve(key)) == ([("ä", 0.5)], [])
    assert ick.ickadd(key, 2, "d", 1, "e") == (2, 0)  # reserved, and dirty again
    assert ick.ickreserve(key, 2) == [("ä", 0.5), ("d", 8.0)]  # what was reserved stays
    assert ick.ickstats(key) == {
        "key": key,
        "pset_key": f"{key}/ick/{{{key}}}/pset",
        "cset_key": f"{key}/ick/{{{key}}}/cset",
        "ver": "ick.v1",
        "pset_size": 4,
        "cset_size": 2,
        "total_size": 6,
        "pset_min": 1.0,
        "pset_max": 20.0,
        "cset_min": 0.5,
        "cset_max": 8.0,
        "total_min": 0.5,
        "total_max": 20.0,
    }
    # The committed makes room; e fills it; d is in both, and would fill nothing.
    assert ick.ickexchange(key, 2, "ä", "b", "nobody") == [("e", 1.0), ("d", 8.0)]
    assert ick.ickreserve(key, 3) == [("e", 1.0), ("d", 2.0), ("b", 12.5)]
    assert ick.ickcommit(key, "d", "d", "c") == 1
    assert ick.ickadd(key, 0, "a", 1, "e") == (2, 0)
    backwashed = ick.ickreserve(key, 2, backwash=True)
    assert backwashed == [("a", 0.0), ("e", 1.0)]
    assert ick.ickcommit(key, *(member for member, _ in backwashed)) == 2
    assert ick.ickexchange(key, 10**30) == [("b", 12.5), ("c", 20.0)]
    assert [type(word) for pair in backwashed for word in pair] == [str, float] * 2
    assert (ick.ickdel(key), ick.ickdel(key)) == (keys - 1, 0)  # one of the sets is empty


def test_a_member_keeps_its_lowest_score_in_each_set_and_when_it_moves(ick: Ick, key: str) -> None:
    ick.ickadd(key, 123, "foo", 20151001, "bar")
    assert ick.ickadd(key, 12.8, "foo", 20151002, "bar") == (0, 1)
    assert ick.ickreserve(key, 2) == [("foo", 12.8), ("bar", 20151001.0)]
    ick.ickadd(key, 500, "foo", 7, "bar")
    assert sizes(ick, key) == (2, 2)
    # Both fold into what is reserved: there the order changes, and the size does not.
    assert ick.ickreserve(key, 3) == [("bar", 7.0), ("foo", 12.8)]
    assert sizes(ick, key) == (0, 2)


def test_an_operation_is_one_command_that_names_all_keys(client: Recording, key: str) -> None:
    """So it is one atomic step, and a cluster or an ACL knows what it touches."""
    for ick, keys in (Ick(client), list(ick_keys(key))), (OwnedIck(client), all_keys(key)):
        for operation in every_operation(ick, key):
            client.script_flush()  # as after a restart: then the script is sent once more
            for commands in ["EVALSHA", "EVAL"], ["EVALSHA"]:
                client.sent = []
                operation()
                assert [command for command, *_ in client.sent] == commands
                for words in client.sent:
                    assert client.command_getkeys(*words) == keys


def spoilt(client: Redis, new: NewKeys) -> Iterator[str]:
    """Keys of everything that is no Ick."""
    for version in "ick.v2", "ick.v", "ick.v10", "":
        client.set(key := new(), version)
        yield key
    client.hset(key := new(), "ick.v1", "ick.v1")
    yield key
    client.zadd(key := new(), {"ick.v1": 1})
    yield key
    for with_version in True, False:
        for wrong in 1, 2:
            keys = ick_keys(key := new())
            client.zadd(keys[3 - wrong], {"a": 1})
            client.rpush(keys[wrong], "a")
            if with_version:
                client.set(key, "ick.v1")
            yield key
    for alone in 1, 2:
        client.zadd(ick_keys(key := new())[alone], {"a": 1})
        yield key


def test_what_is_no_ick_is_refused_by_every_operation_and_stays_as_it_is(
    client: Recording, ick: Ick, new: NewKeys
) -> None:
    for key in spoilt(client, new):
        before = contents(client, key)
        for number, operation in enumerate(every_operation(ick, key)):
            with pytest.raises(ResponseError, match=f"no Ick at {key}: (its|there)"):
                operation()
            assert contents(client, key) == before, (key, number)


def test_all_but_looking_and_deleting_make_an_ick_where_there_is_none(
    client: Recording, ick: Ick, new: NewKeys
) -> None:
    for number in range(len(every_operation(ick, "any"))):
        key = new()
        every_operation(ick, key)[number]()
        assert (ick.ickstats(key) is not None) == (number < MAKING)
        assert (contents(client, key) != NOTHING) == (number < MAKING)


def test_the_hazards_that_the_docstring_names_are_there(client: Recording, new: NewKeys) -> None:
    ick = Ick(client)
    # A reservation before the commit takes in what was added meanwhile: the commit loses it.
    for backwash in False, True:
        ick.ickadd(key := new(), 1, "a")
        ick.ickreserve(key, 2)
        ick.ickadd(key, 2, "a")
        assert ick.ickreserve(key, 2, backwash=backwash) == [("a", 1.0)]
        ick.ickcommit(key, "a")
        assert ick.ickreserve(key, 2) == []
    # A commit removes what a successor has reserved.
    ick.ickadd(key := new(), 1, "a")
    assert ick.ickreserve(key, 1) == ick.ickreserve(key, 1)  # the successor's, too
    assert ick.ickcommit(key, "a") == 1  # late
    assert ick.ickreserve(key, 1) == []
    # An exchange that is sent twice commits what it reserved.
    ick.ickadd(key := new(), 1, "a")
    ick.ickreserve(key, 1)
    ick.ickadd(key, 2, "a")
    assert ick.ickexchange(key, 1, "a") == [("a", 2.0)]
    assert ick.ickexchange(key, 1, "a") == []
    # A lost set looks like an empty one.
    for lost in 1, 2:
        ick.ickadd(key := new(), 1, "a", 2, "b")
        ick.ickreserve(key, 1)
        client.delete(ick_keys(key)[lost])
        assert len(ick.ickreserve(key, 2)) == 1
