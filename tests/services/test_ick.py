"""The Ick, operation by operation, on both servers, through every kind of client."""

import random
import secrets
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from redis import Redis, ResponseError

from consumers.rollup.ick import Ick
from demo.embedded.servers import Redis as Server
from rocket_rides.log.names import ick_keys
from tests.support.ick_oracle import IckOracle

pytestmark = pytest.mark.stream_servers

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
    with Recording.from_url(redis.url, retry=None) as client:
        yield client


@pytest.fixture
def ick(client: Recording) -> Ick:
    return Ick(client)


@pytest.fixture
def new(client: Recording) -> Iterator[Callable[[], str]]:
    """Makes up a key; what it holds afterwards is deleted."""
    made: list[str] = []

    def new() -> str:
        made.append(f"ick-{secrets.token_hex(8)}")
        return made[-1]

    yield new
    client.delete(*(name for key in made for name in ick_keys(key)), "nothing")


@pytest.fixture
def key(new: Callable[[], str]) -> str:
    return new()


def contents(client: Redis, key: str) -> list[bytes | None]:
    """All that the three keys hold."""
    return [client.dump(name) for name in ick_keys(key)]


def every_operation(ick: Ick, key: str, **options: bool) -> list[Callable[[], object]]:
    """Those that may make an Ick come first."""
    return [
        lambda: ick.ickadd(key, **options),
        lambda: ick.ickadd(key, 1, "a", 0, "z", **options),
        lambda: ick.ickreserve(key, 2, **options),
        lambda: ick.ickreserve(key, 2, backwash=True, **options),
        lambda: ick.ickcommit(key, "a", **options),
        lambda: ick.ickexchange(key, 2, "a", backwash=True, **options),
        lambda: ick.ickstats(key),
        lambda: ick.ickdel(key),
        lambda: ick.ickunlink(key),
    ]


MAKING = 6  # of these may make it


def test_a_story_through_every_kind_of_client(redis: Server, new: Callable[[], str]) -> None:
    for options in CLIENTS:
        with Redis.from_url(redis.url, retry=None, **options) as client:
            ick, key = Ick(client), new()
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
            assert (ick.ickdel(key), ick.ickdel(key), ick.ickunlink(key)) == (2, 0, 0)
            assert ick.ickadd(key, 1, "a", 2, "b") == (2, 0)
            ick.ickreserve(key, 1)
            assert (ick.ickunlink(key), ick.ickstats(key)) == (3, None)


def test_an_operation_is_one_command_that_names_all_keys(
    client: Recording, ick: Ick, key: str
) -> None:
    """So it is one atomic step, and a cluster or an ACL knows what it touches."""
    for operation in every_operation(ick, key):
        client.script_flush()  # as after a restart: then the script is sent once more
        for commands in ["EVALSHA", "EVAL"], ["EVALSHA"]:
            client.sent = []
            operation()
            assert [command for command, *_ in client.sent] == commands
            for words in client.sent:
                assert client.command_getkeys(*words) == list(ick_keys(key))


def test_what_is_no_ick_is_refused_by_every_operation_and_stays_as_it_is(
    client: Recording, ick: Ick, new: Callable[[], str]
) -> None:
    def other_version(version: str, *_: str) -> None:
        client.set(version, "ick.v2")

    def a_prefix(version: str, *_: str) -> None:
        client.set(version, "ick.v")

    def other_type(version: str, *_: str) -> None:
        client.hset(version, "ick.v1", "ick.v1")

    def a_set_in_place_of_the_version(version: str, *_: str) -> None:
        client.zadd(version, {"ick.v1": 1})

    def producers_list(version: str, pset: str, cset: str) -> None:
        client.set(version, "ick.v1")
        client.rpush(pset, "a")
        client.zadd(cset, {"a": 1})

    def consumers_string(version: str, pset: str, cset: str) -> None:
        client.set(version, "ick.v1")
        client.zadd(pset, {"a": 1})
        client.set(cset, "a")

    def consumers_string_alone(_version: str, _pset: str, cset: str) -> None:
        client.set(cset, "a")

    def producers_without_version(_version: str, pset: str, _cset: str) -> None:
        client.zadd(pset, {"a": 1})

    def consumers_without_version(_version: str, _pset: str, cset: str) -> None:
        client.zadd(cset, {"a": 1})

    def version_with_sets_of_another(version: str, pset: str, cset: str) -> None:
        client.set(version, "ick.v10")
        client.zadd(pset, {"a": 1, "b": 2})
        client.zadd(cset, {"a": 1})

    for spoil in (
        other_version,
        a_prefix,
        other_type,
        a_set_in_place_of_the_version,
        producers_list,
        consumers_string,
        consumers_string_alone,
        producers_without_version,
        consumers_without_version,
        version_with_sets_of_another,
    ):
        key = new()
        spoil(*ick_keys(key))
        before = contents(client, key)
        for create in True, False:
            for number, operation in enumerate(every_operation(ick, key, create=create)):
                with pytest.raises(ResponseError, match=f"no Ick at {key}"):
                    operation()
                assert contents(client, key) == before, (spoil.__name__, number)


def test_only_what_may_make_an_ick_makes_one(
    client: Recording, ick: Ick, new: Callable[[], str]
) -> None:
    nothing = [None] * 3
    for number in range(len(every_operation(ick, "any"))):
        key = new()
        every_operation(ick, key)[number]()
        assert (ick.ickstats(key) is not None) == (number < MAKING)
        assert (contents(client, key) != nothing) == (number < MAKING)
        ick.ickdel(key)
        refusing = every_operation(ick, key, create=False)[number]
        if number < MAKING:
            with pytest.raises(ResponseError, match=f"no Ick at {key}: nothing is there"):
                refusing()
        else:
            assert refusing() in (None, 0)
        assert contents(client, key) == nothing
        assert ick.ickadd(key) == (0, 0)  # no pair: it is made, and empty
        every_operation(ick, key, create=False)[number]()  # it is there, so this works


def test_scores_are_exact_whatever_they_pass_through(
    client: Recording, ick: Ick, new: Callable[[], str]
) -> None:
    chance = random.Random(10)
    anything = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(200)]
    scores: list[float] = [
        *(float("inf"), float("-inf"), 5e-324, -5e-324, 2.2250738585072014e-308),
        *(1.7976931348623157e308, 0.1 + 0.2, 1 / 3, -1e-7, 1e15 + 0.3, 123456.789012345678, -0.0),
        *(0, 7, 2**53, -(2**53), 2**60, 2**63, 2**64, 1e22, 1e23, 2**63 - 2**10),
        *(score for score in anything if score == score),
    ]
    # Redis keeps small sets as lists, and larger ones another way.
    for together in *([score] for score in scores), scores:
        key = new()
        ick.ickadd(key, *(word for i, score in enumerate(together) for word in (score, str(i))))
        for backwash in False, True:  # through the consumer set, back, and through it again
            reserved = dict(ick.ickreserve(key, 1000, backwash=backwash))
            assert len(reserved) == len(together)
            for i, score in enumerate(together):
                assert repr(reserved[str(i)]) == repr(float(score) + 0.0)  # zero has no sign
        stats = ick.ickstats(key)
        assert stats
        for name in "cset", "total":
            assert (stats[f"{name}_min"], stats[f"{name}_max"]) == (min(together), max(together))


def test_scores_that_differ_in_their_last_digit_are_told_apart(ick: Ick, key: str) -> None:
    low, high = 9007199254740991.0, 9007199254740992.0
    assert ick.ickadd(key, high, "a", low, "a", high, "a", low, "a") == (1, 1)
    ick.ickreserve(key, 1)
    ick.ickadd(key, low - 1, "a", 0.3, "b", 0.1 + 0.2, "c")
    assert ick.ickreserve(key, 4) == [("b", 0.3), ("c", 0.1 + 0.2), ("a", low - 1)]


def test_ties_are_in_the_order_of_the_members_bytes(ick: Ick, key: str) -> None:
    members = [
        "",
        "\0",
        "a\0",
        "aa",
        "B",
        "b",
        "é",
        "z",
        "€",
        "\uffff",
        "🚀",
        "a b",
        "10",
        "9",
        "-",
    ]
    in_order = sorted(members, key=str.encode)
    ick.ickadd(key, *(word for member in members for word in (7, member)))
    assert [member for member, _ in ick.ickreserve(key, 5)] == in_order[:5]
    assert [member for member, _ in ick.ickreserve(key, 50)] == in_order
    assert [member for member, _ in ick.ickexchange(key, 50, "", backwash=True)] == in_order[1:]


def test_thousands_of_pairs_and_members_in_one_call(ick: Ick, new: Callable[[], str]) -> None:
    chance = random.Random(1)
    for count in 1999, 2000, 2001, 4000, 4001, 9000:
        key, oracle = new(), IckOracle()
        for _ in range(2):
            # Many are added twice, and in the second round while they are reserved.
            pairs = [
                (chance.randrange(50) / 10, str(chance.randrange(count))) for _ in range(count)
            ]
            words = [word for pair in pairs for word in pair]
            assert ick.ickadd(key, *words) == oracle.add(pairs)
            commit = [str(chance.randrange(count)) for _ in range(count)]
            size = chance.choice([count // 3, count])
            backwash = chance.random() < 0.5
            oracle.commit(commit)
            expected = oracle.reserve(size, backwash=backwash)
            assert ick.ickexchange(key, size, *commit, backwash=backwash) == expected
        stats = ick.ickstats(key)
        assert stats
        assert (stats["pset_size"], stats["cset_size"]) == (len(oracle.pset), len(oracle.cset))
        everybody = [str(number) for number in range(count)]
        assert ick.ickcommit(key, *everybody) == oracle.commit(everybody)
        assert ick.ickcommit(key, *everybody) == 0


def test_a_full_redis_refuses_additions_whole_and_lets_the_consumer_go_on(
    client: Recording, ick: Ick, new: Callable[[], str]
) -> None:
    key, other = new(), new()
    ick.ickadd(key, 1, "a", 2, "b", 3, "c")
    ick.ickreserve(key, 1)
    client.config_set("maxmemory", 1)
    try:
        before = contents(client, key)
        for refused in (
            lambda: ick.ickadd(key, 0, "a", 1, "new"),
            lambda: ick.ickadd(other),
            lambda: ick.ickreserve(other, 1),
        ):
            with pytest.raises(ResponseError, match="maxmemory"):
                refused()
        assert contents(client, key) == before
        assert contents(client, other) == [None] * 3
        assert ick.ickexchange(key, 2, "a") == [("b", 2.0), ("c", 3.0)]
        assert ick.ickreserve(key, 2, backwash=True) == [("b", 2.0), ("c", 3.0)]
        assert ick.ickcommit(key, "b", "c") == 2
    finally:
        client.config_set("maxmemory", 0)


def test_the_hazards_are_those_that_the_docstring_names(
    client: Recording, ick: Ick, new: Callable[[], str]
) -> None:
    for backwash in False, True:  # reserving again before the commit
        key = new()
        ick.ickadd(key, 1, "a")
        ick.ickreserve(key, 2)
        ick.ickadd(key, 2, "a")
        assert ick.ickreserve(key, 2, backwash=backwash) == [("a", 1.0)]
        ick.ickcommit(key, "a")
        assert ick.ickreserve(key, 2) == []

    key = new()  # an exchange that is sent twice
    ick.ickadd(key, 1, "a")
    ick.ickreserve(key, 1)
    ick.ickadd(key, 2, "a")
    assert ick.ickexchange(key, 1, "a") == [("a", 2.0)]
    assert ick.ickexchange(key, 1, "a") == []

    _, pset, cset = ick_keys(key := new())  # one set that is lost alone, and how to tell
    added, _ = ick.ickadd(key, 1, "a", 2, "b", 3, "c", 4, "d", 5, "e")
    committed = ick.ickcommit(key, *(member for member, _ in ick.ickreserve(key, 2)))
    reserved = ick.ickreserve(key, 2, create=False)
    stats = ick.ickstats(key)
    assert stats
    assert (stats["total_size"], stats["cset_size"]) == (added - committed, len(reserved))
    for lost in pset, cset:
        client.delete(lost)
        assert len(ick.ickreserve(key, create=False)) == 0  # it does not notice
        stats = ick.ickstats(key)
        assert stats
        assert stats["total_size"] < added - committed
    assert stats["cset_size"] < len(reserved)
