"""Two cells behind a router; and a client of Redis and keys, for the modules about the Ick."""

from collections.abc import Callable, Iterator

import pytest
from redis import Redis as Client

from demo.embedded.servers import Postgres, Redis
from tests.support.cells import Cells, two_cells
from tests.support.icks import NewKeys, new_keys
from tests.support.world import PATIENCE


@pytest.fixture(scope="module")
def both(postgres: Postgres, redis_of_kind: Callable[[str], Redis]) -> Iterator[Cells]:
    with two_cells(postgres, redis_of_kind("valkey")) as found:
        yield found


@pytest.fixture
def cells(both: Cells) -> Cells:
    both.put_back()
    return both


@pytest.fixture
def client(redis: Redis) -> Iterator[Client]:
    with Client.from_url(redis.url, retry=None, socket_timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def new(client: Client) -> Iterator[NewKeys]:
    with new_keys(client) as new:
        yield new


@pytest.fixture
def key(new: NewKeys) -> str:
    return new()
