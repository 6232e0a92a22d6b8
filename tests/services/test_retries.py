"""What was held out counts once: by a retry, or by a reset or a recount that takes it back."""

from decimal import Decimal
from typing import Any

import pytest

from tests.support.listing import Listing, hurry, listed, listing
from tests.support.refusing import held, positions, refuse
from tests.support.resets import ask
from tests.support.world import World, catch_up
from unified_log.errors import Overtaken
from unified_log.faults import InjectedCrash, crash_at
from unified_log.readers.round import RoundStep

ASK = "UPDATE held_out_records SET retry = true"


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "REFUSED", {13, 14, 27})


@pytest.mark.proves("retried")
def test_a_retry_counts_it_once_and_out_of_order(world: World) -> None:
    reader = listing(world)
    refuse(world, 2, "RAISE EXCEPTION 'no'")
    ids = world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute(ASK)
    hurry(reader)
    assert [row[3:] for row in held(world)] == [(2, False)]
    world.connection.execute("DROP TRIGGER refuse ON listed")
    world.connection.execute(ASK)
    reader.run_once()
    assert held(world) == []
    world.connection.execute(ASK)
    hurry(reader)
    assert listed(world) == ids
    assert reader.handler.rides == 3
    assert held(world) == []


def test_a_retry_of_a_row_that_is_gone_says_so(world: World) -> None:
    reader = listing(world)
    refuse(world, 2, "RAISE EXCEPTION 'no'")
    ids = world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute("DELETE FROM rides WHERE id = %s", [ids[1]])
    world.connection.execute(ASK)
    hurry(reader)
    assert "its row is gone" in held(world)[0][2]


def test_a_retry_goes_by_the_position_whatever_the_type_that_was_written_down(
    world: World,
) -> None:
    reader = listing(world)
    refuse(world, 2, "RAISE EXCEPTION 'no'")
    ids = world.send(1, 2, 3)
    hurry(reader)
    world.connection.execute("DROP TRIGGER refuse ON listed")
    world.connection.execute("UPDATE held_out_records SET type = 'of.old', retry = true")
    hurry(reader)
    assert held(world) == []
    assert listed(world) == ids


def test_a_retry_that_was_dropped_meanwhile_is_not_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listing(world)
    refuse(world, 2, "RAISE EXCEPTION 'no'")
    ids = world.send(1, 2)
    hurry(reader)
    world.connection.execute("DROP TRIGGER refuse ON listed")
    world.connection.execute(ASK)
    record = reader._view.record

    def after_a_drop(position: int) -> Any:
        world.connection.execute("UPDATE held_out_records SET retry = false, dropped_at = now()")
        return record(position)

    monkeypatch.setattr(reader._view, "record", after_a_drop)
    assert reader.run_once().retried == []
    assert positions(world) == ids[1:]
    assert listed(world) == ids[:1]


def test_what_is_asked_for_past_the_checkpoint_holds_up_nothing(world: World) -> None:
    reader = listing(world)
    ids = world.send(1, 2)
    world.connection.execute(
        "INSERT INTO held_out_records (kind, name, position, type, reason, retry)"
        " VALUES ('listing', 'listing0', %s, 'ride.create', 'by hand', true)",
        [ids[1] + 100],
    )
    hurry(reader)
    assert listed(world) == ids


RECOUNT = "UPDATE checkpoints SET recount = true"


@pytest.mark.parametrize("ask", [ASK, RECOUNT], ids=["a retry", "a recount"])
def test_no_process_writes_what_it_remembers_over_what_another_has_changed(
    world: World, ask: str
) -> None:
    """Its checkpoint stands where it did."""
    reader = listing(world)
    refuse(world, 2, "RAISE EXCEPTION 'no'")
    ids = world.send(1, 2, 3)
    hurry(reader)
    other = listing(world)
    world.connection.execute("DROP TRIGGER refuse ON listed")
    world.connection.execute(ask)
    hurry(reader)
    assert (other.at, other.handler.rides) == (reader.at, 2)
    ids += world.send(4)
    with pytest.raises(Overtaken):
        hurry(other)
    hurry(reader)
    assert listed(world) == ids
    assert reader.handler.rides == 4


def test_nor_over_what_was_made_anew(world: World) -> None:
    ids = world.send(1, 2, 3)
    other = listing(world)
    hurry(other)
    world.connection.execute("DELETE FROM checkpoints")
    reader = listing(world)
    hurry(reader)
    assert other.at == reader.at
    ids += world.send(4)
    with pytest.raises(Overtaken):
        hurry(other)
    hurry(reader)
    assert listed(world) == ids


def test_a_repair_that_failed_leaves_a_reader_that_can_move(world: World) -> None:
    reader = listing(world)
    ids = world.send(1)
    hurry(reader)
    world.connection.execute(RECOUNT)
    with pytest.raises(InjectedCrash), crash_at(RoundStep.BEFORE_COMMIT):
        reader.run_once()
    hurry(reader)
    ids += world.send(2)
    hurry(reader)
    assert listed(world) == ids


@pytest.mark.usefixtures("refusing")
def test_a_recount_takes_back_what_was_held_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listing(world)
    ids = world.send(12, 13, 14)
    hurry(reader)
    assert positions(world) == ids[1:]
    monkeypatch.setattr(Listing, "REFUSED", set())
    world.connection.execute("UPDATE checkpoints SET recount = true")
    hurry(reader)
    assert held(world) == []
    assert listed(world) == ids


@pytest.mark.proves("taken-back")
def test_a_reset_takes_back_what_was_held_out(world: World) -> None:
    """So that a retry counts nothing twice."""
    world.connection.execute(
        "ALTER TABLE consumer_states ADD CHECK (rides <> 2 OR total_distance <> 3)"
    )
    consumer = world.consumer(batch_size=1)
    ids = world.send(1, 2, 4)
    for _ in range(4):
        consumer.run_once()
    assert positions(world) == [ids[1]]
    assert consumer.standing == (ids[2], Decimal(5))
    ask(world)
    consumer.run_once()
    assert held(world) == []
    world.connection.execute(ASK)
    consumer.run_once()
    assert world.standing() == world.truth


def test_a_recount_by_sql_takes_back_what_was_held_out(world: World) -> None:
    world.connection.execute("ALTER TABLE consumer_states ADD CHECK (total_distance <> 3)")
    consumer = world.consumer()
    [refused] = world.send(3)
    consumer.run_once()
    assert positions(world) == [refused]
    world.send(4)
    catch_up(consumer)
    world.connection.execute("UPDATE checkpoints SET recount = true")
    consumer.run_once()
    assert held(world) == []
    assert world.standing() == world.truth


def test_a_retry_that_a_reset_has_overtaken_counts_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process applies it after this one has found what to try again."""
    world.connection.execute(
        "ALTER TABLE consumer_states ADD CONSTRAINT odd CHECK (total_distance <> 3)"
    )
    consumer, other = world.consumer(), world.consumer()
    [refused] = world.send(3)
    consumer.run_once()
    assert positions(world) == [refused]
    world.connection.execute("ALTER TABLE consumer_states DROP CONSTRAINT odd")
    world.connection.execute(ASK)
    record = consumer._view.record

    def after_a_reset(position: int) -> Any:
        ask(world)
        with other.handler.connection.transaction():
            other.handler.repair()
        return record(position)

    monkeypatch.setattr(consumer._view, "record", after_a_reset)
    consumer.run_once()
    assert held(world) == []
    assert world.standing() == world.truth
