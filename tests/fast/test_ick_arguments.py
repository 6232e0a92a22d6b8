"""What an Ick refuses before anything is sent, and where in a cluster its keys lie."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from redis.crc import key_slot

from consumers.rollup.ick import Ick, IckLost, OwnedIck, writes_key
from rocket_rides.rollup import ick_keys

ANYTHING: list[object] = [None, b"bytes", 1, 1.5, ("a",), ["a"]]
NO_STRINGS = [*ANYTHING, True]


@pytest.fixture
def nobody(tmp_path: Path) -> redis.Redis:
    """Whatever it sends fails: there is no server."""
    return redis.Redis.from_url(f"unix://{tmp_path}/nobody", retry=None)


@pytest.fixture
def ick(nobody: redis.Redis) -> Ick:
    return Ick(nobody)


def refused(call: Callable[..., object], *arguments: object, **options: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(*arguments, **options)


def test_right_arguments_are_sent(ick: Ick) -> None:
    for call in (
        lambda: ick.ickadd("key"),
        lambda: ick.ickadd("", 1, "", float("-inf"), "a", -(2**53), "b", 2.0**1000, "c"),
        lambda: ick.ickadd("key", 2**60, "a power of two"),
        lambda: ick.ickreserve("key"),
        lambda: ick.ickreserve("key", 10**20, backwash=True),
        lambda: ick.ickcommit("key"),
        lambda: ick.ickexchange("key", 0, "a", "a", backwash=True),
        lambda: ick.ickstats("key"),
        lambda: ick.ickdel("key"),
    ):
        with pytest.raises(redis.ConnectionError):
            call()


@pytest.mark.parametrize("key", [*NO_STRINGS, "\ud800"])
def test_a_key_is_a_string(ick: Ick, key: object) -> None:
    for call, *rest in (
        (ick.ickadd, 1, "a"),
        (ick.ickadd,),
        (ick.ickreserve, 1),
        (ick.ickcommit, "a"),
        (ick.ickexchange, 1, "a"),
        (ick.ickstats,),
        (ick.ickdel,),
    ):
        refused(call, key, *rest)


@pytest.mark.parametrize("member", [*NO_STRINGS, "\udcff"])
def test_a_member_is_a_string(ick: Ick, member: object) -> None:
    refused(ick.ickadd, "key", 1, member)
    refused(ick.ickadd, "key", 1, "good", 2, member)
    refused(ick.ickcommit, "key", "good", member)
    refused(ick.ickexchange, "key", 1, "good", member)


@pytest.mark.parametrize(
    "score",
    [None, "1", b"1", True, False, 1j, [1], float("nan"), -float("nan"), 10**400, 2**53 + 1],
    ids=repr,
)
def test_a_score_is_a_number_that_a_double_can_be(ick: Ick, score: object) -> None:
    refused(ick.ickadd, "key", score, "a")
    refused(ick.ickadd, "key", 1, "good", score, "a")  # no half of it is sent


@pytest.mark.parametrize("size", [-1, 1.0, "1", None, True, False, float("inf")], ids=repr)
def test_a_size_is_a_natural_number(ick: Ick, size: object) -> None:
    refused(ick.ickreserve, "key", size)
    refused(ick.ickreserve, "key", max_size=size)
    refused(ick.ickexchange, "key", size, "a", backwash=True)


def test_scores_and_members_come_in_pairs(ick: Ick) -> None:
    refused(ick.ickadd, "key", 1)
    refused(ick.ickadd, "key", 1, "a", 2)
    refused(ick.ickadd, "key", "a", 1)


def test_an_icks_keys_share_a_slot_of_a_cluster() -> None:
    """Redis hashes what is between the first { and the next }, or the whole key without any."""
    assert ick_keys("K") == ("K", "K/ick/{K}/pset", "K/ick/{K}/cset")
    for key in ("rollup", "rollup:5f3a", "größer 🚀", " ", "a/ick/b", "{tag}", "a{tag}b", "}{tag}"):
        assert slots(key) == 1, key
    # Nothing to hash, or a brace that does not enclose a tag.
    for key in ("", "{", "}", "a{b", "a}b", "{}", "a{}b", "{}{tag}", "}{"):
        assert slots(key) > 1, key


def slots(key: str) -> int:
    return len({key_slot(name.encode()) for name in (*ick_keys(key), writes_key(key))})


def test_a_refused_argument_leaves_an_owned_ick_known(nobody: redis.Redis) -> None:
    """Nothing was sent, so nothing is in doubt: the next operation is tried."""
    ick = OwnedIck(nobody)
    refused(ick.ickadd, "key", "a", 1)
    refused(ick.ickcommit, "key", 1)
    with pytest.raises(redis.ConnectionError):
        ick.ickadd("key", 1, "a")


def test_an_owned_ick_is_lost_once_an_operation_failed_and_no_other_is(nobody: redis.Redis) -> None:
    ick = OwnedIck(nobody)
    with pytest.raises(redis.ConnectionError):
        ick.ickadd("key", 1, "a")
    for call in (
        lambda: ick.ickadd("key", 1, "a"),
        lambda: ick.ickreserve("key", 1),
        lambda: ick.ickcommit("key", "a"),
        lambda: ick.ickexchange("key", 1, "a"),
        lambda: ick.ickstats("key"),
    ):
        with pytest.raises(IckLost, match="the Ick at key is not as we left it"):
            call()
    for call in lambda: ick.ickdel("key"), lambda: ick.ickadd("other", 1, "a"):  # still sent
        with pytest.raises(redis.ConnectionError):
            call()
