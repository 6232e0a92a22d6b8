"""A record that is refused is held out, and all others count: which errors do that."""

from decimal import Decimal
from itertools import product
from typing import Any

import psycopg
import pytest

from consumers.totals.total import Total
from tests.support.listing import Listing, hurry, listed, listing
from tests.support.refusing import held, positions, refuse
from tests.support.world import World, catch_up
from unified_log.errors import Overtaken
from unified_log.readers import held_out
from unified_log.readers.gaps import HealedSum
from unified_log.readers.handler import Handler
from unified_log.readers.held_out import StandsStill

ASK = "UPDATE held_out_records SET retry = true"
HEALED = """
    SELECT gaps_healed, records_healed, distance_healed
    FROM checkpoints JOIN consumer_states USING (kind, name) WHERE name = %s
"""


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Listing, "REFUSED", {13, 14, 27})


@pytest.mark.proves("held-out")
@pytest.mark.usefixtures("refusing")
def test_only_what_is_refused_is_held_out(world: World) -> None:
    """From the log, and from the view, once the log has lost all."""
    ids = world.send(*range(1, 41))
    for lost, batch_size in product([False, True], [1, 5, 1000]):
        name = f"batches of {batch_size}, lost: {lost}"
        reader = listing(world, batch_size, name)
        if lost:
            world.log().start_anew()
            ids += world.send(41)
        took = sum(len(done.records) + HealedSum.of(done.healed).records for done in hurry(reader))
        assert positions(world) == [ids[12], ids[13], ids[26]], name
        assert listed(world, name) == [ride for ride in ids if ride not in positions(world)]
        assert reader.handler.rides == took == len(ids) - 3
        assert held(world)[0][1:] == (None, "13.000 m are too many", 1, False)
        row = "FROM checkpoints WHERE name = %s"
        assert world.value(f"SELECT refusals_in_a_row {row}", name) == 0
        world.connection.execute("DELETE FROM held_out_records")


TRIGGERS = {
    "22003": "PERFORM 1e10::integer",
    "23514": "RAISE check_violation USING MESSAGE = 'no'",
    "P0001": "RAISE EXCEPTION 'no'",
    "P0002": "RAISE no_data_found",
    "20000": "CASE WHEN false THEN END CASE",
    "21000": "PERFORM (SELECT generate_series(1, 2))",
    "27000": "RAISE triggered_data_change_violation USING MESSAGE = 'no'",
    "44000": "RAISE with_check_option_violation USING MESSAGE = 'no'",
    "45000": "RAISE EXCEPTION 'no' USING ERRCODE = '45000'",
    "SHOP1": "RAISE EXCEPTION 'no' USING ERRCODE = 'SHOP1'",
    "90001": "RAISE EXCEPTION 'no' USING ERRCODE = '90001'",
    "54000": "RAISE program_limit_exceeded USING MESSAGE = 'no'",
}
OUTAGES = {
    "40001": "RAISE serialization_failure USING MESSAGE = 'no'",
    "42P01": "PERFORM FROM nowhere",
    "42501": "RAISE insufficient_privilege USING MESSAGE = 'no'",
    "53100": "RAISE disk_full USING MESSAGE = 'no'",
    "55P03": "RAISE lock_not_available USING MESSAGE = 'no'",
    "57014": "RAISE query_canceled USING MESSAGE = 'no'",
    "58030": "RAISE io_error USING MESSAGE = 'no'",
    "72000": "RAISE EXCEPTION 'no' USING ERRCODE = '72000'",
    "F0000": "RAISE config_file_error USING MESSAGE = 'no'",
    "HV000": "RAISE fdw_error USING MESSAGE = 'no'",
    "XX000": "RAISE internal_error USING MESSAGE = 'no'",
}


@pytest.mark.parametrize("when", ["BEFORE", "AFTER"], ids=["at once", "at the commit"])
def test_what_the_record_is_to_blame_for_holds_it_out(world: World, when: str) -> None:
    reader = listing(world)
    refused, counted = list[tuple[int, str]](), list[int]()
    for state, raise_it in TRIGGERS.items():
        refuse(world, 3, raise_it, when)
        first, second, third, last = world.send(1, 2, 3, 4)
        hurry(reader)
        refused.append((third, state))
        counted += first, second, last
        assert [row[:2] for row in held(world)] == refused
        assert listed(world) == counted
        assert reader.handler.rides == len(counted)
        world.connection.execute("DROP FUNCTION refuse CASCADE")


@pytest.mark.proves("outage")
def test_an_outage_holds_nothing_out(world: World) -> None:
    reader = listing(world)
    world.send(1, 2, 3, 4)
    for state, raise_it in OUTAGES.items():
        refuse(world, 3, raise_it)
        with pytest.raises(psycopg.Error) as raised:
            hurry(reader)
        assert raised.value.sqlstate == state
        assert positions(world) == listed(world) == []
        world.connection.execute("DROP FUNCTION refuse CASCADE")


def test_an_error_of_pythons_holds_nothing_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listing(world)
    monkeypatch.setattr(reader.handler, "take", lambda _: 1 / 0)
    world.send(1)
    with pytest.raises(ZeroDivisionError):
        hurry(reader)
    assert held(world) == []


@pytest.mark.usefixtures("refusing")
def test_each_round_moves_on_however_often_it_is_refused(world: World) -> None:
    """In a lost tail there is no entry to read, so another round would wait for one."""
    reader = listing(world)
    ids = world.send(*range(1, 41))
    world.log().start_anew()
    while reader.at.position < ids[-1]:
        before = reader.at.position
        reader.run_once()
        assert reader.at.position > before
    assert len(positions(world)) == 3


def test_what_another_process_took_meanwhile_is_not_held_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the batch between its refusal here and the next look at the checkpoint."""
    reader, other = listing(world, batch_size=1), listing(world)
    ids = world.send(1, 2, 3)
    monkeypatch.setattr(reader.handler, "REFUSED", {1})
    reload = reader._taking._reload

    def after_the_other() -> None:
        hurry(other)
        reload()

    monkeypatch.setattr(reader._taking, "_reload", after_the_other)
    hurry(reader)
    assert positions(world) == []
    assert listed(world) == ids
    assert reader.handler.rides == 3


def test_a_text_that_cannot_be_sent_holds_its_record_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listing(world)
    take = reader.handler.take

    def with_nul(records: list[Any]) -> None:
        if any(record.distance == 2 for record in records):
            world_text = "\0"
            reader.handler.connection.execute("SELECT %s::text", [world_text])
        take(records)

    monkeypatch.setattr(reader.handler, "take", with_nul)
    ids = world.send(1, 2, 3)
    hurry(reader)
    assert positions(world) == [ids[1]]
    assert listed(world) == [ids[0], ids[2]]


def test_a_checkpoint_that_is_gone_is_no_refusal(world: World) -> None:
    """Its foreign key would refuse each record."""
    reader = listing(world)
    world.send(1)
    hurry(reader)
    world.connection.execute("DELETE FROM checkpoints")
    world.send(2)
    with pytest.raises(Overtaken):
        hurry(reader)
    assert held(world) == []


def test_nor_is_it_where_the_next_record_is_malformed_in_the_view(world: World) -> None:
    """Which is held out without being tried."""
    reader = listing(world)
    world.connection.execute("ALTER TABLE rides DROP CONSTRAINT rides_distance_in_range")
    world.take(-2)
    world.send(1)
    world.log().start_anew()
    world.send(2)
    world.connection.execute("DELETE FROM checkpoints")
    with pytest.raises(Overtaken):
        hurry(reader)


def test_what_comes_from_redis_is_taken_from_the_view_before_it_is_held_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry that was altered there, and is a record all the same."""
    monkeypatch.setattr(Listing, "REFUSED", {13})
    reader = listing(world)
    ids = world.take(1, 2, 3)
    world.connection.execute(
        "UPDATE staged_log_records SET data = jsonb_set(data, '{distance}', '13') WHERE id = %s",
        [ids[1]],
    )
    world.send(4)
    hurry(reader)
    assert held(world) == []
    assert world.value("SELECT sum(distance)::int FROM listed") == 10


def test_what_is_malformed_in_the_view_is_held_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = listing(world)
    ids = world.send(1, 2, 3)
    world.connection.execute("ALTER TABLE rides DROP CONSTRAINT rides_distance_in_range")
    world.connection.execute("UPDATE rides SET distance = -2 WHERE id = %s", [ids[1]])
    world.log().start_anew()
    ids += world.send(4)
    hurry(reader)
    assert [row[:2] for row in held(world)] == [(ids[1], None)]
    assert listed(world) == [ids[0], ids[2], ids[3]]


def test_after_ten_in_a_row_the_reader_stands_still(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In whichever process; and it goes on once a record counts."""
    reader = listing(world)
    refuse(world, 1, "RAISE EXCEPTION 'no'")
    ids = world.send(*[1] * 12)
    for _ in range(2):
        with pytest.raises(StandsStill, match=f"10 records in a row.* ride.create {ids[10]}: no"):
            hurry(reader)
        reader = listing(world)
    assert positions(world) == ids[:10]
    world.connection.execute("DROP TRIGGER refuse ON listed")
    hurry(reader)
    assert listed(world) == ids[10:]


def test_what_sql_heals_ends_a_row_of_refusals(world: World) -> None:
    """It counts as well, though it never comes to `take`."""
    consumer = world.consumer()
    world.connection.execute("ALTER TABLE consumer_states ADD CHECK (total_distance < 30)")
    for _ in range(12):
        world.send(1)
        world.log().start_anew()
        catch_up(consumer)
        world.send(30)
        catch_up(consumer)
    assert len(positions(world)) == 12
    assert world.value("SELECT records_healed FROM checkpoints") == 12
    assert world.value("SELECT refusals_in_a_row FROM checkpoints") == 1


def test_a_reader_that_stands_still_goes_on_once_a_person_has_decided(world: World) -> None:
    """Also where the next record is to blame itself: those that were dropped are in no row."""
    reader = listing(world)
    refuse(world, 1, "RAISE EXCEPTION 'no'")
    ids = world.send(*[1] * 12, 2)
    with pytest.raises(StandsStill):
        hurry(reader)
    world.connection.execute("UPDATE held_out_records SET dropped_at = now()")
    hurry(reader)
    assert positions(world) == ids[:12]
    assert listed(world) == ids[12:]


def test_with_a_hundred_undecided_the_reader_stands_still(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_out, "MOST_UNDECIDED", 4)
    reader = listing(world)
    refuse(world, 1, "RAISE EXCEPTION 'no'")
    ids = world.send(*[1, 2] * 5)
    with pytest.raises(StandsStill, match="4 records are held out, and nobody has decided"):
        hurry(reader)
    assert positions(world) == ids[:8:2]
    world.connection.execute("UPDATE held_out_records SET dropped_at = now()")
    hurry(reader)
    assert positions(world) == ids[::2]
    assert listed(world) == ids[1::2]


def test_what_is_refused_in_a_gap_that_sql_heals_is_held_out_alone(world: World) -> None:
    """And the metres of the others count as healed."""
    ids = world.send(1, 2, 30, 4, 5)
    world.log().start_anew()
    ids += world.send(6)
    world.connection.execute("ALTER TABLE consumer_states ADD CHECK (total_distance < 30)")
    for name, batch_size in (("one by one", 1), ("all at once", 1000)):
        consumer = world.consumer(name, batch_size=batch_size)
        for _ in range(20):
            consumer.run_once()
        assert positions(world) == [ids[2]]
        assert world.standing(name) == consumer.standing == (ids[-1], Decimal(18))
        [healed] = world.connection.execute(HEALED, [name])
        assert healed == (1, 4, 12)
        world.connection.execute("DELETE FROM held_out_records")


def test_totals_and_ratings_heal_by_sql_and_others_by_the_view() -> None:
    assert Total.heal is not Handler.heal
    assert Listing.heal is Handler.heal
