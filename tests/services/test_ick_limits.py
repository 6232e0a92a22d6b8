"""The Ick at its limits: scores to the last digit, any bytes, thousands at once, a full Redis."""

import random
import struct

import pytest
from redis import Redis, ResponseError

from consumers.rollup.ick import Ick, OwnedIck
from tests.support.clusters import each_stream_server
from tests.support.ick_oracle import IckOracle
from tests.support.icks import NOTHING, NewKeys, contents, sizes

pytestmark = each_stream_server


@pytest.fixture
def ick(client: Redis) -> Ick:
    return Ick(client)


def test_scores_are_exact_whatever_they_pass_through(ick: Ick, new: NewKeys) -> None:
    chance = random.Random(10)
    anything = [struct.unpack("d", chance.randbytes(8))[0] for _ in range(100)]
    scores: list[float] = [
        *(float("inf"), float("-inf"), 5e-324, -5e-324, 2.2250738585072014e-308),
        *(1.7976931348623157e308, 0.1 + 0.2, 1 / 3, -1e-7, 1e15 + 0.3, 123456.789012345678, -0.0),
        *(0, 7, 2**53, -(2**53), 2**60, 2**63, 2**64, 1e22, 1e23, 2**63 - 2**10),
        *(score for score in anything if score == score),
    ]
    # Redis keeps small sets as lists, and larger ones another way.
    for together in *([score] for score in scores), scores * 2:
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


@pytest.mark.parametrize("kind", [Ick, OwnedIck])
def test_thousands_of_pairs_and_members_in_one_call(
    client: Redis, kind: type[Ick], new: NewKeys
) -> None:
    ick, chance = kind(client), random.Random(1)
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
        assert sizes(ick, key) == (len(oracle.pset), len(oracle.cset))
        everybody = [str(number) for number in range(count)]
        assert ick.ickcommit(key, *everybody) == oracle.commit(everybody)
        assert ick.ickcommit(key, *everybody) == 0


@pytest.mark.parametrize("kind", [Ick, OwnedIck])
def test_a_full_redis_refuses_additions_whole_and_lets_the_consumer_go_on(
    client: Redis, kind: type[Ick], new: NewKeys
) -> None:
    ick, key, other = kind(client), new(), new()
    ick.ickadd(key, 1, "a", 2, "b", 3, "c")
    ick.ickreserve(key, 1)
    client.config_set("maxmemory", 1)
    try:
        assert ick.ickexchange(key, 2, "a") == [("b", 2.0), ("c", 3.0)]
        assert ick.ickreserve(key, 2, backwash=True) == [("b", 2.0), ("c", 3.0)]
        assert ick.ickcommit(key, "b") == 1
        assert ick.ickreserve(key, 2) == [("c", 3.0)]  # it changes nothing
        assert sizes(ick, key) == (0, 1)
        before = contents(client, key)
        for refused in (
            lambda: ick.ickadd(key, 0, "c", 1, "new"),
            lambda: kind(client).ickadd(other),
            lambda: kind(client).ickreserve(other, 1),
        ):
            with pytest.raises(ResponseError, match="maxmemory"):
                refused()
        assert contents(client, key) == before
        assert contents(client, other) == NOTHING
        assert ick.ickdel(key) > 0
    finally:
        client.config_set("maxmemory", 0)
