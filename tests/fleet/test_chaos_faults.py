"""What chaos does to a server's files."""

import pytest

from chaos.faults.servers import cut_newest
from tests.support.world import World, drain


@pytest.mark.stream_servers
def test_the_newest_entries_are_cut_off_the_file_and_no_others(world: World) -> None:
    world.take(*range(1, 101))
    drain(world.streamer(batch_size=5))
    world.redis.kill()
    cut_newest(world.redis.append_only_file, 10)
    world.redis.start()
    assert [record.id for record in world.records()] == [*range(1, 91)]
