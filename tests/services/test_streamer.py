"""The outbox's way into the log: nothing lost, nothing out of order, whatever fails."""

import re
from collections.abc import Callable
from enum import Enum

import psycopg
import pytest

from rocket_rides.settings import PROJECT
from tests.support.disasters import trigger
from tests.support.world import World, catch_up, chained, drain, exact
from unified_log.errors import Overtaken
from unified_log.faults import InjectedCrash, crash_at, listening
from unified_log.log import START
from unified_log.repair import COUNT_REPAIRED
from unified_log.streamer.drain import NEXT_BATCH, BatchStep
from unified_log.tracing import LONGEST_STATE


def test_five_thousand_staged_at_once_go_out_in_batches(world: World) -> None:
    ids = world.take(*range(1, 5001))
    streamer = world.streamer()
    sizes = list(iter(streamer.run_once, 0))
    assert sizes == [1000] * 5
    assert [record.id for record in world.records()] == ids
    assert chained(world)
    assert world.staged() == 0
    assert world.value("SELECT last_sent_id FROM streamer_state") == ids[-1]
    assert catch_up(world.consumer())[1] == sum(range(1, 5001))


PAGE = (PROJECT / "docs/production.md").read_text()
# As large as the outbox takes them.
ENLARGE = """
    UPDATE staged_log_records SET data = data || jsonb_build_object('note',
        repeat('x', 8192 - octet_length(type || data::text || ', "note": ""')))
"""
LONGEST_TRACES = "UPDATE staged_log_records SET traceparent = %s, tracestate = %s"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_batch_of_the_largest_records_is_sent_and_counted(world: World) -> None:
    """Where Redis takes no more at once than the page says that it should."""
    [most] = re.findall(r"proto-max-bulk-len (\w+)", PAGE)
    world.take(*range(1, 2001))
    world.connection.execute(ENLARGE)
    world.connection.execute(LONGEST_TRACES, [PARENT, "a=" + "b" * (LONGEST_STATE - 2)])
    control = world.log().redis
    control.config_set("proto-max-bulk-len", most)
    try:
        assert world.streamer(batch_size=2000).run_once() == 2000
    finally:
        control.config_set("proto-max-bulk-len", "512mb")
    log = world.log()
    assert len(log.read(START, 2000)[-1].fields[5]) == 8192 - len("ride.create")
    assert not log.was_cut
    assert exact(world)


@pytest.mark.proves("deleted-as-sent")
def test_a_batch_deletes_what_it_has_sent_and_nothing_else(world: World) -> None:
    ids = world.take(1, 2, 3)
    streamer = world.streamer(batch_size=2)
    assert streamer.run_once() == 2
    assert [record.id for record in world.records()] == ids[:2]
    staged = world.connection.execute("SELECT id FROM staged_log_records")
    assert [id_ for (id_,) in staged] == ids[2:]


@pytest.mark.parametrize("step", BatchStep)
def test_a_crash_at_any_step_loses_nothing(world: World, step: BatchStep) -> None:
    consumer = world.consumer()
    world.take(1, 2, 3)
    streamer = world.streamer()
    with pytest.raises(InjectedCrash), crash_at(step):
        streamer.run_once()
    sent_before_the_crash = len(world.records())
    assert sent_before_the_crash == (0 if step is BatchStep.BEFORE_SEND else 3)
    assert (world.staged() == 0) == (step is BatchStep.AFTER_COMMIT)

    world.send(4)
    assert world.staged() == 0
    assert chained(world)
    at = catch_up(consumer)
    assert at == world.truth


def test_what_was_read_ahead_is_not_sent_before_the_batch_that_failed(world: World) -> None:
    ids = world.take(1, 2, 3, 4, 5)
    streamer = world.streamer(batch_size=2)
    at_commit = "AFTER UPDATE ON streamer_state DEFERRABLE INITIALLY DEFERRED"
    trigger(world, "falter", at_commit, "RAISE 'the disk is full';")
    with pytest.raises(psycopg.Error, match="the disk is full"):
        streamer.run_once()
    world.connection.execute("DROP TRIGGER falter ON streamer_state")
    assert drain(streamer) == 5
    assert [record.id for record in world.records()] == [*ids[:2], *ids]
    assert world.staged() == 0


def change_a_record(world: World) -> None:
    world.connection.execute("DELETE FROM staged_log_records WHERE id = cell_start() + 2")


def change_last_sent(world: World) -> None:
    world.connection.execute("UPDATE streamer_state SET last_sent_id = cell_start()")


@pytest.mark.parametrize("change", [change_a_record, change_last_sent])
def test_what_somebody_changes_by_hand_during_a_batch_is_not_committed_over(
    world: World, change: Callable[[World], None]
) -> None:
    world.take(1)
    streamer = world.streamer()
    assert drain(streamer) == 1
    *_, last = world.take(2, 3)

    def interfere(step: Enum) -> None:
        if step is BatchStep.BEFORE_SEND:
            change(world)

    with pytest.raises(Overtaken), listening(interfere):
        streamer.run_once()
    assert world.value("SELECT max(id) FROM staged_log_records") == last


def test_who_counts_what_was_repaired_does_not_disturb_a_batch(world: World) -> None:
    """The leader's transaction sees what others have committed since it began."""
    world.take(1)
    streamer = world.streamer()

    def count(step: Enum) -> None:
        if step is BatchStep.BEFORE_SEND:
            world.connection.execute(COUNT_REPAIRED, [1])

    with listening(count):
        assert streamer.run_once() == 1
    assert world.value("SELECT records_sent FROM streamer_state") == 2


def test_no_batch_visits_rows_deleted_before_it(world: World) -> None:
    """Buffers touched by a batch's SELECT, after 100 records and after 20,000, without vacuum."""
    world.connection.execute("ALTER TABLE staged_log_records SET (autovacuum_enabled = off)")
    streamer = world.streamer()

    def buffers() -> int:
        world.take(*[5] * 100)
        query = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)" + NEXT_BATCH
        values = [streamer.last_sent, 2**40, 1000]
        row = streamer._connection.execute(query, values, prepare=False).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        drain(streamer)
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    fresh = buffers()
    for _ in range(20):
        world.take(*[5] * 1000)
        drain(streamer)
    assert buffers() <= fresh + 5
