"""Postgres goes back to an earlier time, or is replaced by a copy: totals end exact, unaided.

On servers of its own: a restore takes the whole cluster back. The log is not touched.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal

import pytest

from lab.chaos.backup import Backup
from tests.support.clusters import cluster, restore, until_promoted, world_on
from tests.support.world import World, catch_up, drain, eventually, take

CONSUMERS = ("consumer0", "consumer1")


@contextmanager
def clone(world: World, backup: Backup) -> Iterator[World]:
    """A second world on a copy of the backup, with the same stream."""
    with cluster() as server:
        server.account.make_private(server.sockets)
        server.home.mkdir(exist_ok=True)
        backup.restore(recovery_signal=True, into=server)
        server.start()
        with world_on(server, world.redis, world.stream, world.folder) as copy:
            until_promoted(copy)
            yield copy


def exact(world: World, name: str = "consumer0") -> bool:
    at = catch_up(world.consumer(name))
    return at == world.truth


def all_exact(world: World) -> bool:
    return all(world.standing(name) == world.truth for name in CONSUMERS)


def unbelieved(world: World) -> int:
    return world.value("SELECT coalesce(sum(unbelieved_entries), 0) FROM checkpoints")


def nothing_set_aside(world: World) -> bool:
    return world.value("SELECT count(*) FROM dead_letters") == 0


@pytest.mark.parametrize("recovery_signal", [True, False], ids=["signal", "no signal"])
@pytest.mark.parametrize("new", [2, 4, 9], ids=["fewer", "as many", "more"])
def test_new_rides_draw_the_numbers_of_lost_ones(
    own_world: World, recovery_signal: bool, new: int
) -> None:
    """Four rides are lost. The term of before the backup went on after it.

    One consumer's checkpoint comes back with the database, from within the lost past; the other
    has never counted.
    """
    world, streamer = own_world, own_world.streamer()
    world.take(1, 2)
    drain(streamer)
    assert exact(world)
    world.take(3)
    drain(streamer)
    backup = Backup(world.postgres, "first")
    world.take(100, 200)
    drain(streamer)
    world.take(300, 400)
    drain(world.streamer())  # in a term that the backup has not
    assert exact(world)
    restore(world, backup, recovery_signal=recovery_signal)
    ids = world.take(*range(10, 10 + new))
    assert ids[0] in range(4, 40)  # Postgres logs a sequence 32 numbers ahead
    drain(world.streamer())
    for name in CONSUMERS:
        assert exact(world, name)
    assert world.truth[1] == 6 + sum(range(10, 10 + new))
    assert nothing_set_aside(world)
    assert unbelieved(world) > 0


@pytest.mark.parametrize("recovery_signal", [True, False], ids=["signal", "no signal"])
def test_a_running_fleet_notices_by_itself(own_world: World, recovery_signal: bool) -> None:
    world = own_world
    services = [world.service("consumers", name).says("stands at") for name in CONSUMERS]
    world.service("streamer").says("leading")
    world.take(1, 2, 3)
    eventually(lambda: all_exact(world))
    backup = Backup(world.postgres, "first")
    world.take(100, 200)
    eventually(lambda: all_exact(world))
    restore(world, backup, recovery_signal=recovery_signal)
    world.take(7, 8, 9)
    eventually(lambda: all_exact(world) and world.truth[0] > 3)
    assert world.truth[1] == 30
    assert nothing_set_aside(world)
    for service in services:
        assert "DEL" not in service.output.read_text()


def test_two_restores_of_one_backup_are_two_histories(own_world: World) -> None:
    """Both recoveries begin timeline 2, and draw the same numbers."""
    world = own_world
    world.take(1, 2)
    drain(world.streamer())
    backup = Backup(world.postgres, "first")
    for distance in (100, 1000):
        restore(world, backup, recovery_signal=True)
        world.take(*[distance] * 3)
        drain(world.streamer())
        assert exact(world)
    assert world.truth[1] == 3003
    assert nothing_set_aside(world)


def test_a_zombie_that_keeps_writing_is_not_believed(own_world: World) -> None:
    """The old primary's streamer goes on after the new one has taken over, in a term known to both.

    Here it is played by a streamer on a copy: the promoted database is the one that goes on.
    """
    world = own_world
    world.take(1, 2)
    zombie = world.streamer()
    drain(zombie)
    backup = Backup(world.postgres, "first")
    with clone(world, backup) as promoted:
        leader = promoted.streamer()
        consumer = promoted.consumer()
        for distance in range(5):
            world.take(500 + distance)
            drain(zombie)
            promoted.take(distance + 1)
            drain(leader)
            drain(zombie)
            consumer.run_once()
        assert exact(promoted)
        assert promoted.truth[1] == 3 + 15
        assert nothing_set_aside(promoted)
        assert exact(world)  # and the old one's readers believe it, not the new one


@pytest.mark.parametrize("when", ["before the next leader", "after it"])
def test_a_promotion_that_lost_nothing_needs_no_healing(own_world: World, when: str) -> None:
    world = own_world
    consumer = world.consumer()
    world.take(1, 2)
    drain(world.streamer())
    catch_up(consumer)
    world.take(3, 4)
    drain(world.streamer())  # sent, and not yet read
    world.take(5)  # staged, and not yet sent
    backup = Backup(world.postgres, "first")
    restore(world, backup, recovery_signal=True)
    if when == "after it":
        drain(world.streamer())
    promoted = world.consumer()
    done = promoted.run_once()
    assert done.healed == []
    assert len(done.records) == (3 if when == "after it" else 2)
    drain(world.streamer())
    assert exact(world)
    assert unbelieved(world) == 0


def test_a_dump_into_a_new_cluster(own_world: World) -> None:
    """Another system identifier, another timeline; the same terms."""
    world = own_world
    world.take(1, 2, 3)
    drain(world.streamer())
    dump = world.folder / "dump.sql"
    command = [f"{world.postgres.programs}/pg_dump", "-f", str(dump), world.postgres_url]
    subprocess.run(command, check=True)
    world.take(100, 200)
    drain(world.streamer())
    assert exact(world)
    with cluster() as server:
        server.start()
        load = [f"{server.programs}/psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump)]
        subprocess.run([*load, server.url], check=True, stdout=subprocess.DEVNULL)
        with world_on(server, world.redis, world.stream, world.folder) as restored:
            restored.take(7, 8)
            drain(restored.streamer())
            assert exact(restored)
            assert restored.truth[1] == 21
            assert nothing_set_aside(restored)


def test_a_restore_while_rides_come_in_and_the_old_log_is_unread(own_world: World) -> None:
    """A reader that was stopped all the while reads both pasts in one go."""
    world = own_world
    world.take(1)
    drain(world.streamer())
    backup = Backup(world.postgres, "first")
    world.take(*range(100, 150))
    drain(world.streamer())
    restore(world, backup, recovery_signal=False)
    with world.connect() as connection:
        take(connection, *["0.001"] * 60)
    drain(world.streamer(batch_size=7))
    consumer = world.consumer(batch_size=10)
    assert (catch_up(consumer).ride_id, consumer.total) == world.truth
    assert world.truth[1] == Decimal("1.060")
    assert unbelieved(world) == 50
