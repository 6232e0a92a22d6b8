"""A log of one history: what another database wrote, or this one's lost past, does not count."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import psycopg
import pytest

from rocket_rides.errors import Overtaken
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.log import Entry
from rocket_rides.terms import NO_TERM, Term
from streamer.drain import Step
from streamer.leaders_term import begin
from tests.support.clusters import fresh_world
from tests.support.world import World, catch_up, chained, drain, eventually, exact

pytestmark = pytest.mark.stream_servers

TERMS = "SELECT after, term, void FROM terms ORDER BY after"


def write(world: World, number: int, distance: str, prev: int, term: str | None = None) -> None:
    """Append an entry past the streamer, as anybody may."""
    fields: dict[Any, Any] = {
        "data": f'{{"id": {number}, "distance": {distance}}}',
        "prev": str(prev),
    }
    world.log().redis.xadd(world.stream, fields | ({"term": term} if term else {}))


@pytest.fixture
def other(world: World) -> Iterator[World]:
    """A second fleet that writes to the same stream."""
    with fresh_world(world.postgres, world.redis, world.folder) as other:
        other.stream = world.stream
        yield other


def test_a_leader_commits_its_term_before_it_sends_and_puts_it_into_every_entry(
    world: World,
) -> None:
    streamer = world.streamer()
    assert world.connection.execute(TERMS).fetchall() == [(0, streamer.term.name, [])]
    world.take(1, 2)
    drain(streamer)
    assert {record.term for record in world.records()} == {streamer.term.name.encode()}


def test_terms_follow_one_another_and_an_idle_one_is_replaced(world: World) -> None:
    first, second = world.streamer().term, world.streamer().term
    world.take(1, 2)
    third = world.streamer()
    drain(third)
    fourth = world.streamer().term
    assert len({first, second, third.term, fourth}) == 4
    assert world.connection.execute(TERMS).fetchall() == [
        (0, third.term.name, [second.name, first.name]),
        (2, fourth.name, []),
    ]


def test_replaced_terms_are_remembered_up_to_a_number(world: World) -> None:
    for _ in range(105):
        begin(world.connection)
    assert world.value("SELECT cardinality(void) FROM terms") == 100


def test_the_leader_of_an_older_term_can_commit_nothing(world: World) -> None:
    """Whatever last_sent says: it may have been set back together with the database."""
    stale = world.streamer()
    world.take(1)
    world.streamer()
    with pytest.raises(Overtaken):
        stale.run_once()
    assert world.staged() == 1
    assert exact_after_drain(world)


def exact_after_drain(world: World) -> bool:
    drain(world.streamer())
    return exact(world)


def test_two_fleets_on_one_stream_count_their_own_rides(world: World, other: World) -> None:
    ours, theirs = (world.streamer(), world.consumer()), (other.streamer(), other.consumer())
    for distance in range(1, 51):
        world.take(distance)
        other.take(distance * 7)
        for streamer, consumer in (ours, theirs):
            drain(streamer)
            consumer.run_once()
    for fleet, (_, consumer) in ((world, ours), (other, theirs)):
        assert exact(fleet, consumer)
        assert fleet.value("SELECT count(*) FROM dead_letters") == 0
        assert fleet.value("SELECT unbelieved_entries FROM checkpoints") == 50


def test_the_services_of_two_fleets_say_it_once_and_end_exact(world: World, other: World) -> None:
    """Also of entries that are not ours by their ids alone: a stranger of the version before."""
    for fleet in (world, other):
        fleet.service("streamer").says("leading")
    consumers = [fleet.service("consumers", "consumer0") for fleet in (world, other)]
    for distance in range(1, 21):
        world.take(distance)
        other.take(distance * 7)
        write(world, 10**6 + distance, "5", 10**6)
    for fleet, consumer in zip((world, other), consumers, strict=True):
        consumer.says("another database writes to this stream: give it a STREAM_NAME of its own")
        consumer.says("another fleet writes to this stream: give it a STREAM_NAME of its own")
        eventually(lambda fleet=fleet: fleet.standing() == fleet.truth)  # type: ignore[misc]
        assert consumer.output.read_text().count("give it a STREAM_NAME") == 2
        assert "healed" not in consumer.output.read_text()


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


def test_a_tail_is_not_missing_while_there_is_more_to_read(world: World) -> None:
    consumer = world.consumer(batch_size=2)
    world.take(1, 2, 3, 4, 5)
    drain(world.streamer())
    for _ in range(3):
        assert consumer.run_once().healed == []
    assert exact(world, consumer)


def test_a_crash_after_sending_leaves_entries_that_nobody_believes(world: World) -> None:
    """The batch is sent again under the next term; no stranger is suspected."""
    consumer = world.consumer()
    world.take(1, 2)
    for _ in range(2):  # nothing is committed under the first term, and it is replaced
        with pytest.raises(InjectedCrash), crash_at(Step.AFTER_SEND):
            world.streamer().run_once()
    drain(world.streamer())
    world.take(3)
    with pytest.raises(InjectedCrash), crash_at(Step.AFTER_SEND):
        world.streamer().run_once()
    drain(world.streamer())
    done = consumer.run_once()
    assert (done.skipped, done.unbelieved.foreign) == (0, {})
    assert done.unbelieved.uncommitted.total() == 5
    assert exact(world, consumer)


def test_an_entry_not_believed_does_not_hold_the_batch(world: World) -> None:
    """Its id lies past last_sent, and so did the ids of those that were about to be committed."""
    streamer = world.streamer()
    world.take(1)
    drain(streamer)
    write(world, 2, "5", 1, "0123456789abcdef")
    streamer._log.append([(2, '{"id": 2, "distance": 5}')], 1, Term("fedcba9876543210", 0))
    world.take(2)
    drain(streamer)
    done = world.consumer().run_once()
    assert (len(done.records), done.held) == (2, False)
    assert done.unbelieved.foreign == {b"0123456789abcdef": 1, b"fedcba9876543210": 1}


def test_a_term_ends_where_the_next_begins(world: World) -> None:
    first = world.streamer()
    world.take(1, 2)
    drain(first)
    world.streamer()
    world.take(3)
    write(world, 3, "500", 2, first.term.name)  # its leader was replaced, and does not know yet
    assert exact_after_drain(world)


def test_nothing_at_or_below_the_beginning_of_a_term_is_believed(world: World) -> None:
    world.take(1, 2)
    drain(world.streamer())
    second = world.streamer()
    world.log().redis.delete(world.stream)
    write(world, 2, "500", 0, second.term.name)
    assert exact(world)


def test_a_log_written_before_there_were_terms_stays_believed(world: World) -> None:
    """The upgrade: entries up to last_sent have no term, and the next leader begins one there."""
    world.take(1, 2, 3)
    drain(world.streamer())
    world.log().redis.delete(world.stream)
    world.connection.execute("DELETE FROM terms")
    for number in (1, 2, 3):
        write(world, number, str(number), number - 1)
    early = world.consumer("early")  # there is no term yet
    assert len(early.run_once().records) == 3
    world.take(4)
    drain(world.streamer())
    write(world, 5, "500", 4)  # a streamer of the version before that goes on
    late = world.consumer("late")
    done = late.run_once()
    assert (len(done.records), done.healed) == (4, [])
    assert (done.unbelieved.foreign, done.unbelieved.uncommitted) == ({}, {NO_TERM: 1})
    assert exact(world, early)
    assert exact(world, late)


def test_a_standby_of_the_version_before_can_not_lead_without_a_term(world: World) -> None:
    for statement in (
        "SELECT last_sent FROM streamer_state",
        "UPDATE streamer_state SET last_sent=1",
    ):
        with pytest.raises(psycopg.errors.UndefinedColumn):
            world.connection.execute(statement)


def test_a_new_term_is_known_to_a_reader_in_the_very_round_of_its_first_entry(
    world: World,
) -> None:
    consumer = world.consumer()
    world.take(1)
    drain(world.streamer())
    consumer.run_once()
    read = consumer._log.read

    def be_replaced_and_then_read(*arguments: Any) -> list[Entry]:
        consumer._log.read = read  # type: ignore[method-assign]
        world.take(2)
        drain(world.streamer())
        return read(*arguments)

    consumer._log.read = be_replaced_and_then_read  # type: ignore[method-assign,assignment]
    done = consumer.run_once()
    assert (len(done.records), done.unbelieved.total) == (1, 0)


@contextmanager
def counted(connection: psycopg.Connection) -> Iterator[list[str]]:
    """The statements that go through the connection meanwhile."""
    statements: list[str] = []
    execute = connection.execute

    def noted(query: Any, *arguments: Any, **options: Any) -> Any:
        statements.append(str(query))
        return execute(query, *arguments, **options)

    connection.execute = noted  # type: ignore[method-assign]
    yield statements
    del connection.execute


def test_knowing_the_terms_costs_no_trip_of_its_own(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    world.take(1)
    drain(streamer)
    with counted(consumer._connection) as statements:
        assert consumer.run_once().records  # it knew no term
        drain_another(world)
        assert consumer.run_once().records  # nor this one
    assert len(statements) == 8  # twice: the bounds, a reset, the move, the total


def drain_another(world: World) -> None:
    world.take(2)
    drain(world.streamer())


def test_terms_that_are_all_gone_are_believed_no_longer(world: World) -> None:
    consumer, streamer = world.consumer(), world.streamer()
    for distance in (1, 2):
        world.take(distance)
        drain(streamer)
        if distance == 1:
            catch_up(consumer)
    world.connection.execute("DELETE FROM terms")
    assert consumer.run_once().unbelieved.total == 1
    assert exact(world, consumer)


def test_a_batch_sent_twice_is_still_a_resend(world: World) -> None:
    world.take(1, 2)
    world.streamer().run_once(double_send=True)
    done = world.consumer().run_once()
    assert (done.skipped, done.unbelieved.total) == (2, 0)
    assert chained(world)


def test_a_forgery_in_the_log_does_not_keep_the_streamer_from_leading(world: World) -> None:
    write(world, 999999, "5", 999998)
    world.take(1)
    assert exact_after_drain(world)
