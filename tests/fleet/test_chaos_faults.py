"""What chaos does to a server's files, and what its onlooker makes of them."""

from typing import Any

import pytest

from chaos.faults.servers import cut_newest
from chaos.observer import LogReader
from rocket_rides.log import Log
from tests.support.world import World, drain, eventually


@pytest.mark.stream_servers
def test_the_newest_entries_are_cut_off_the_file_and_no_others(world: World) -> None:
    world.take(*range(1, 101))
    drain(world.streamer(batch_size=5))
    world.redis.kill()
    cut_newest(world.redis.append_only_file, 10)
    world.redis.start()
    assert [record.id for record in world.records()] == [*range(1, 91)]


def test_the_onlooker_reads_a_log_that_begins_again_with_lower_ids(world: World) -> None:
    """As after a FLUSHALL while the clock is right again; and it tells of each entry once."""
    world.take(1, 2)
    drain(world.streamer())
    onlooker = LogReader(lambda: world.redis.url, world.stream)
    onlooker.start()
    eventually(lambda: len(onlooker.told) == 2, "the first entries")
    log = world.log()
    first, second = (
        dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
        for entry in log.range("-", "+", 2)
    )
    log.start_anew()
    append(log, second, "1-1")
    eventually(lambda: len(onlooker.told) == 3, "the entry with the lower id")
    log.start_anew()
    append(log, second, "1-1")
    append(log, first, "1-2")
    eventually(lambda: len(onlooker.told) == 4, "the entry after one that was told")
    onlooker.end()
    assert [told.record.id for told in onlooker.told] == [1, 2, 2, 1]


def append(log: Log, fields: dict[Any, Any], redis_id: str) -> None:
    log.redis.xadd(log.name, fields, id=redis_id)
