"""The keys of an Ick and what they hold, for the tests that look past its operations."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis

from consumers.rollup.ick import Ick, writes_key
from rocket_rides.rollup import ick_keys

NOTHING: list[bytes | None] = [None] * 4


def all_keys(key: str) -> list[str]:
    """Those of an Ick, owned or not: the version, the two sets, the count of writes."""
    return [*ick_keys(key), writes_key(key)]


def contents(client: Redis, key: str) -> list[bytes | None]:
    """All that they hold, as DUMP tells it."""
    return [client.dump(name) for name in all_keys(key)]


def put_back(client: Redis, key: str, before: list[bytes | None]) -> None:
    """Make them hold what they held before."""
    client.delete(*all_keys(key))
    for name, dump in zip(all_keys(key), before, strict=True):
        if dump is not None:
            client.restore(name, 0, dump)


def sizes(ick: Ick, key: str) -> tuple[int, int]:
    """Of the producer set and the consumer set."""
    stats = ick.ickstats(key)
    assert stats
    return stats["pset_size"], stats["cset_size"]


class NewKeys:
    """Makes up keys for Icks."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self) -> str:
        self.made.append(f"ick-{secrets.token_hex(8)}")
        return self.made[-1]


@contextmanager
def new_keys(client: Redis) -> Iterator[NewKeys]:
    """What is at them afterwards is deleted."""
    new = NewKeys()
    yield new
    client.delete(*(name for key in new.made for name in all_keys(key)), "nothing")
