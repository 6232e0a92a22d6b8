"""Two cells behind a router, for the modules about it."""

from collections.abc import Callable, Iterator

import pytest

from demo.embedded.servers import Postgres, Redis
from tests.support.cells import Cells, two_cells


@pytest.fixture(scope="module")
def both(postgres: Postgres, redis_of_kind: Callable[[str], Redis]) -> Iterator[Cells]:
    with two_cells(postgres, redis_of_kind("valkey")) as found:
        yield found


@pytest.fixture
def cells(both: Cells) -> Cells:
    both.put_back()
    return both
