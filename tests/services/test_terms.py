"""A log of one history: what another database wrote, or this one's lost past, does not count."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.support.clusters import fresh_world
from tests.support.world import World, catch_up, drain, exact
from unified_log.errors import Overtaken
from unified_log.faults import InjectedCrash, crash_at
from unified_log.streamer.drain import BatchStep

TERMS = "SELECT after, term, replaced FROM terms ORDER BY after"


@pytest.fixture
def other(world: World) -> Iterator[World]:
    """A second fleet that writes to the same stream."""
    with fresh_world(world.postgres, world.redis, world.folder) as other:
        other.stream = world.stream
        yield other


def test_terms_follow_one_another_and_an_idle_one_is_replaced(world: World) -> None:
    """A leader commits its term before it sends, and puts it into every entry."""
    first, second = world.streamer().term, world.streamer().term
    world.take(1, 2)
    third = world.streamer()
    assert world.connection.execute(TERMS).fetchall()[0][1] == third.term.name
    drain(third)
    assert {record.term for record in world.records()} == {third.term.name.encode()}
    fourth = world.streamer().term
    assert len({first, second, third.term, fourth}) == 4
    assert world.connection.execute(TERMS).fetchall() == [
        (world.start, third.term.name, [second.name, first.name]),
        (world.start + 2, fourth.name, []),
    ]


def test_the_leader_of_an_older_term_can_commit_nothing(world: World) -> None:
    """Whatever last_sent says: it may have been set back together with the database."""
    stale = world.streamer()
    world.take(1)
    world.streamer()
    with pytest.raises(Overtaken):
        stale.run_once()
    assert world.staged() == 1
    drain(world.streamer())
    assert exact(world)


def test_a_tail_that_was_lost_is_healed_while_another_fleet_keeps_writing(
    world: World, other: World
) -> None:
    consumer, stranger = world.consumer(), other.streamer()
    streamer = world.streamer()
    streamer._log.appending = lambda *_: nullcontext()  # type: ignore[method-assign,assignment]
    world.take(1, 2, 3)
    drain(streamer)  # "sent", to a log that lost it
    for distance in (7, 8):
        other.take(distance)
        drain(stranger)
        consumer.run_once()  # never an idle round
    assert consumer.standing == world.truth


def test_a_crash_after_sending_leaves_entries_that_nobody_believes(world: World) -> None:
    """The batch is sent again under the next term; nothing is called foreign."""
    consumer = world.consumer()
    world.take(1, 2)
    for _ in range(2):  # nothing is committed under the first term, and it is replaced
        with pytest.raises(InjectedCrash), crash_at(BatchStep.AFTER_SEND):
            world.streamer().run_once()
    drain(world.streamer())
    world.take(3)
    with pytest.raises(InjectedCrash), crash_at(BatchStep.AFTER_SEND):
        world.streamer().run_once()
    drain(world.streamer())
    done = consumer.run_once()
    assert (done.skipped, done.ignored.foreign) == (0, {})
    assert done.ignored.uncommitted.total() == 5
    assert exact(world, consumer)


def test_terms_that_are_all_gone_are_believed_no_longer(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    for distance in (1, 2):
        world.take(distance)
        drain(streamer)
        if distance == 1:
            catch_up(consumer)
    world.connection.execute("DELETE FROM terms")
    assert consumer.run_once().ignored.total == 1
    assert exact(world, consumer)
