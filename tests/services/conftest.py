"""Two cells behind a router, for the modules about it."""

from collections.abc import Callable, Iterator

import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.cells import Cells, two_cells
from tests.support.folders import short_folder


@pytest.fixture(scope="module")
def both(postgres: Postgres, redis_of_kind: Callable[[str], Redis]) -> Iterator[Cells]:
    with short_folder() as folder, two_cells(postgres, redis_of_kind("valkey"), folder) as found:
        yield found


@pytest.fixture
def cells(both: Cells) -> Cells:
    both.put_back()
    return both


@pytest.fixture
def own_cells(postgres: Postgres, redis: Redis) -> Iterator[Cells]:
    with short_folder() as folder, two_cells(postgres, redis, folder) as found:
        yield found
