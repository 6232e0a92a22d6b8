"""Postgres goes back to an earlier time, or is replaced by a copy: totals end exact, unaided.

On servers of its own: a restore takes the whole cluster back. The log is not touched.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.chaos.backup import Backup
from tests.support.closings import close
from tests.support.clusters import cluster, restore, until_promoted, world_on
from tests.support.disasters import flush
from tests.support.world import World, catch_up, drain

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


def ignored(world: World) -> int:
    return world.value("SELECT coalesce(sum(entries_ignored), 0) FROM checkpoints")


def nothing_set_aside(world: World) -> bool:
    return world.value("SELECT count(*) FROM malformed_entries") == 0


@pytest.mark.parametrize(("new", "recovery_signal"), [(2, False), (9, True)], ids=["fewer", "more"])
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
    assert ids[0] - world.start in range(4, 40)  # Postgres logs a sequence 32 numbers ahead
    drain(world.streamer())
    for name in CONSUMERS:
        assert exact(world, name)
    assert world.truth[1] == 6 + sum(range(10, 10 + new))
    assert nothing_set_aside(world)
    assert ignored(world) > 0


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


def test_a_promotion_that_lost_nothing_needs_no_healing(own_world: World) -> None:
    world = own_world
    consumer = world.consumer()
    world.send(1, 2)
    catch_up(consumer)
    world.take(3, 4)
    drain(world.streamer())  # sent, and not yet read
    world.take(5)  # staged, and not yet sent
    backup = Backup(world.postgres, "first")
    restore(world, backup, recovery_signal=True)
    done = world.consumer().run_once()  # before the next leader begins its term
    assert (len(done.records), done.healed) == (2, [])
    drain(world.streamer())
    done = world.consumer().run_once()
    assert (len(done.records), done.healed) == (1, [])
    assert exact(world)
    assert ignored(world) == 0


def test_a_promoted_copy_keeps_the_closings_and_a_restore_from_before_one_knows_none(
    own_world: World,
) -> None:
    world = own_world
    world.send(1, 2, 3)
    before = Backup(world.postgres, "first")
    close(world, world.start + 2)
    after = Backup(world.postgres, "second")
    flush(world)
    stands = {after: world.start + 2, before: world.start}
    for backup, position in stands.items():
        restore(world, backup, recovery_signal=True)
        until_promoted(world)
        assert world.consumer("late").at.position == position
        assert exact(world, "late")
        assert world.value("SELECT count(*) FROM closings") == (backup is after)
