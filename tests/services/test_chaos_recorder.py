"""What chaos records of Postgres."""

import pytest

from lab.chaos.trace.recorder import as_lsn
from tests.support.world import World


@pytest.mark.parametrize("position", [0, 2**32 - 1, 2**32, 5 * 2**32 + 0x1BA036A8])
def test_a_position_in_the_wal_is_as_postgres_reads_it(world: World, position: int) -> None:
    """Also where more than 4 GiB were written, as in a run of a million rides."""
    after = world.value("SELECT %s::text::pg_lsn - '0/0'::pg_lsn", as_lsn(position))
    assert after == position
