"""What chaos does to a server's files and memory, and what its onlooker makes of them."""

import random
import threading
from typing import Any, NamedTuple, cast

import pytest
import redis

from lab.chaos.faults.redis_server import cut_newest
from lab.chaos.faults.scene import Moot, Scene
from lab.chaos.faults.shortages import fill_memory, fill_redis
from lab.chaos.fleet import Fleet
from lab.chaos.journal import Journal
from lab.chaos.observer import LogReader, Told
from lab.chaos.redis_pair import RedisPair, client
from rocket_rides.log import START, Log, LogFull
from rocket_rides.terms import Term
from tests.support.pairs import redis_pair
from tests.support.world import World, drain, eventually


@pytest.mark.stream_servers
def test_the_newest_entries_are_cut_off_the_file_and_no_others(world: World) -> None:
    world.take(*range(1, 101))
    drain(world.streamer(batch_size=5))
    world.redis.kill()
    cut_newest(world.redis.append_only_file, 10)
    world.redis.start()
    assert [record.id for record in world.records()] == [*range(1, 91)]


def test_redis_is_full_until_the_fault_ends_and_even_if_it_is_restarted() -> None:
    with redis_pair("valkey") as pair, Log(pair.primary.url, "log") as log:
        scene = Scene(cast(Fleet, OnlyRedis(pair)), Journal())
        fault = threading.Thread(target=fill_memory, args=[scene, random.Random(0)])
        fault.start()
        eventually(lambda: is_full(log), "a full Redis")
        pair.primary.crash(0)
        eventually(lambda: is_full(log), "a full Redis again")
        scene.over.set()
        fault.join()
        assert not is_full(log)
        with pytest.raises(Moot):  # it is over before it begins
            fill_redis(scene, random.Random(0))


class OnlyRedis(NamedTuple):
    """As much of a fleet as the fault needs."""

    redises: RedisPair

    def redis_client(self) -> redis.Redis:
        return client(self.redises.primary)


def is_full(log: Log) -> bool:
    try:
        log.append([(1, "{}")], 0, Term("term", 0))
    except LogFull:
        return True
    except redis.RedisError:  # it is just restarting
        pass
    return False


def test_the_onlooker_reads_a_log_that_begins_again_with_lower_ids(world: World) -> None:
    """As after a FLUSHALL while the clock is right again; and it tells of each entry once."""
    world.take(1, 2)
    drain(world.streamer())
    told: list[Told] = []
    onlooker = LogReader(lambda: world.redis.url, world.stream, told.append)
    onlooker.start()
    eventually(lambda: len(told) == 2, "the first entries")
    log = world.log()
    first, second = (
        dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
        for entry in log.read(START, 2)
    )
    log.start_anew()
    append(log, second, "1-1")
    eventually(lambda: len(told) == 3, "the entry with the lower id")
    log.start_anew()
    append(log, second, "1-1")
    append(log, first, "1-2")
    eventually(lambda: len(told) == 4, "the entry after one that was told")
    onlooker.end()
    assert [one.record.id for one in told] == [1, 2, 2, 1]


def test_the_onlooker_reads_what_a_promoted_replica_took_under_ids_that_others_had(
    world: World,
) -> None:
    """The old primary's clock was ahead, and the replica lacked its last entries."""
    world.take(*range(1, 9))
    drain(world.streamer())
    log = world.log()
    fields: list[dict[Any, Any]] = [
        dict(zip(entry.fields[::2], entry.fields[1::2], strict=True))
        for entry in log.read(START, 8)
    ]
    log.start_anew()
    for number in (1, 2, 3, 4):
        append(log, fields[number - 1], f"9-{number}")
    told: list[Told] = []
    onlooker = LogReader(lambda: world.redis.url, world.stream, told.append)
    onlooker.start()
    eventually(lambda: len(told) == 4, "the old primary's entries")
    promoted = log.redis.pipeline()
    promoted.delete(log.name)
    for number, ride in enumerate((1, 2, 5, 6, 7, 8), 1):
        promoted.xadd(log.name, fields[ride - 1], id=f"9-{number}")
    promoted.execute()
    eventually(lambda: len(told) == 8, "the new primary's entries")
    onlooker.end()
    assert [one.record.id for one in told] == [*range(1, 9)]


def test_the_onlooker_reads_on_in_a_promoted_replica_that_lacks_its_last_entry() -> None:
    with redis_pair("valkey") as pair:
        told: list[Told] = []
        onlooker = LogReader(lambda: pair.primary.url, "log", told.append)
        send(pair, 1, 2, 3)
        pair.join()
        pair.cut_off()
        send(pair, 4)
        onlooker.start()
        eventually(lambda: len(told) == 4, "the old primary's entries")
        pair.promote()
        pair.join()
        send(pair, 5)
        eventually(lambda: len(told) == 5, "the newest entry")
        onlooker.end()
    assert [one.record.id for one in told] == [1, 2, 3, 4, 5]


def test_the_onlooker_reads_on_in_a_log_that_is_only_restarted() -> None:
    """And begins again where its last entry is gone."""
    with redis_pair("valkey") as pair:
        told: list[Told] = []
        onlooker = LogReader(lambda: pair.primary.url, "log", told.append)
        for ride in (1, 2, 3):
            send(pair, ride)
        onlooker.start()
        eventually(lambda: len(told) == 3, "what was there")
        send(pair, 4)
        eventually(lambda: len(told) == 4, "the entry before the restart")
        pair.primary.crash(0)
        send(pair, 5)
        eventually(lambda: len(told) == 5, "the entry after the restart")
        file = pair.primary.append_only_file
        pair.primary.crash(0, lambda: cut_newest(file, 3))
        send(pair, 6)
        eventually(lambda: len(told) == 6, "the newest entry")
        onlooker.end()
    assert [one.record.id for one in told] == [1, 2, 3, 4, 5, 6]


def send(pair: RedisPair, *rides: int) -> None:
    with Log(pair.primary.url, "log") as log:
        records = [(ride, f'{{"id": {ride}, "distance": 1.5}}') for ride in rides]
        log.append(records, rides[0] - 1, Term("term", 0))


def append(log: Log, fields: dict[Any, Any], redis_id: str) -> None:
    log.redis.xadd(log.name, fields, id=redis_id)
