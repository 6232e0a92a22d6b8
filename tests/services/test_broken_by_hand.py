"""What somebody broke by hand: said with a way back, and repaired without a ride lost."""

import re
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

from tests.support.disasters import limited_redis
from tests.support.world import World, catch_up, drain, eventually, exact, take, transaction
from unified_log.errors import Unavailable
from unified_log.streamer.leaders_term import BEGIN, REPLACED_KEPT, leave_out
from unified_log.terms import RESTORE_STATE, StateLost

TERMS = "SELECT after, term FROM terms ORDER BY after"


def test_a_state_that_is_gone_is_said_with_the_way_to_bring_it_back(world: World) -> None:
    world.send(1, 2, 3)
    consumer = world.consumer()
    world.take(4, 5)
    world.connection.execute("DELETE FROM streamer_state")
    services = [world.service("streamer"), world.service("consumers.totals", "other")]
    for service in services:
        service.says("streamer_state is empty")
    with pytest.raises(StateLost) as lost:
        consumer.run_once()
    world.connection.execute(advice(lost.value))
    assert world.value("SELECT last_sent_id FROM streamer_state") == world.start + 3
    eventually(lambda: world.staged() == 0 and world.standing("other") == world.truth)
    assert exact(world, consumer)


@pytest.mark.parametrize("known_by", ["rides", "rides and a later term", "a later term"])
def test_a_last_sent_that_was_set_back_is_said_and_begins_no_term(
    world: World, known_by: str
) -> None:
    """Also when the newest rides were deleted by hand: the advice is never below a term."""
    first, _, third = world.send(1, 2, 3)
    if known_by == "rides":  # that a reader has counted
        catch_up(world.consumer())
    if "term" in known_by:
        world.streamer()
    if "rides" not in known_by:
        world.connection.execute("DELETE FROM rides WHERE id > %s", [first])
    before = world.connection.execute(TERMS).fetchall()
    world.connection.execute("UPDATE streamer_state SET last_sent_id = %s", [first])
    [fourth] = world.take(4)
    known = f"nothing after position {first} was sent, but more was"
    with pytest.raises(StateLost, match=known) as lost:
        world.streamer()
    assert world.connection.execute(TERMS).fetchall() == before
    world.connection.execute(advice(lost.value))
    assert world.value("SELECT last_sent_id FROM streamer_state") == third
    drain(world.streamer())
    assert [record.id for record in world.records()] == [*range(first, fourth + 1)]


def test_a_row_without_its_record_is_named_and_healed_after_the_advice(world: World) -> None:
    """Whoever inserts a ride by hand, and stages nothing, stops only the next leader."""
    world.send(1, 2)
    assert exact(world)
    missing = world.value("INSERT INTO rides (distance) VALUES (5) RETURNING id")
    world.take(3)
    said = f"row {missing} was inserted without its record"
    streamer = world.service("streamer").says(said)
    with pytest.raises(Unavailable, match=said) as refusal:
        world.streamer()
    [command] = re.findall(r"python -m (\S+);", str(refusal.value))
    repairer = world.service(command).says("left out of the log: 1")
    assert repairer.ends() == 0
    eventually(lambda: world.staged() == 0)
    assert "more was" not in streamer.output.read_text()
    assert exact(world)
    assert world.value("SELECT records_sent FROM streamer_state") == 4


def test_the_advice_about_such_a_row_waits_for_rides_in_flight(world: World) -> None:
    """Else the log would go on after one with a lower position, which would then be stranded."""
    world.send(1, 2)
    with transaction(world) as slow:
        take(slow, 7)
        bare = world.value("INSERT INTO rides (distance) VALUES (5) RETURNING id")
        with pytest.raises(Unavailable, match=f"row {bare} .* python -m unified_log.repair"):
            world.streamer()
        repairer = world.service("unified_log.repair").says("the log waits until")
        assert leave_out(world.connect(), world.start + 2) == 0
        slow.commit()
    assert repairer.ends() == 0
    drain(world.streamer())
    assert world.staged() == 0
    assert catch_up(world.consumer())[1] == 1 + 2 + 7  # the nightly job has the other counted


def test_the_way_out_of_such_a_row_never_sets_the_log_back(world: World) -> None:
    """It looked, and meanwhile a leader sends."""
    world.send(1)
    world.value("INSERT INTO rides (distance) VALUES (5) RETURNING id")
    world.take(2)
    with transaction(world) as leader:
        leader.execute("UPDATE streamer_state SET last_sent_id = last_sent_id + 2")
        with ThreadPoolExecutor(1) as other:
            asked = other.submit(leave_out, world.connect(), world.start + 3)
            eventually(lambda: world.waiting == 1)
            leader.commit()
            assert asked.result() == 0
    assert world.value("SELECT last_sent_id FROM streamer_state") == world.start + 3


def advice(lost: Unavailable) -> str:
    found = re.search(r"(WITH gone|UPDATE) .*", str(lost))
    assert found
    return found[0]


def test_a_backlog_makes_neither_the_advice_nor_a_new_leader_slow(world: World) -> None:
    """Rows visited, not seconds: neither looks at each staged record for each ride."""
    world.connection.execute(
        "WITH ride AS (INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 20000)"
        " RETURNING id) INSERT INTO staged_log_records SELECT id, 'ride.create', '{}' FROM ride"
    )
    world.connection.execute("ANALYZE")
    values = {"term": "0" * 16, "kept": REPLACED_KEPT}
    for statement in (BEGIN, RESTORE_STATE):
        explained = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}"
        row = world.connection.execute(explained, values, prepare=False).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] < 100_000


def test_an_exhausted_stream_is_started_anew(world: World) -> None:
    """An entry with the greatest id there is: none can follow."""
    consumer = world.consumer()
    streamer = world.service("streamer").says("leading")
    world.take(1, 2)
    eventually(lambda: world.staged() == 0)
    catch_up(consumer)
    world.log().redis.xadd(world.stream, {"x": "y"}, id=f"{2**64 - 1}-{2**64 - 1}")
    world.take(3)
    streamer.says("started a new one")
    eventually(lambda: world.staged() == 0)
    consumer = world.consumer()  # one that has not read the last entry, and one that has
    assert exact(world, consumer)
    world.connection.execute(
        "UPDATE checkpoints SET last_redis_id = %s", [f"{2**64 - 1}-{2**64 - 1}"]
    )
    world.take(4)
    eventually(lambda: world.staged() == 0)
    assert exact(world)
    assert world.value("SELECT count(*) FROM malformed_entries") == 0


def test_a_total_is_made_with_its_checkpoint_or_not_at_all(world: World) -> None:
    """Whatever its name is, the advice is about it alone."""
    name = "x' OR 'a'='a"
    world.send(1, 2, 3)
    for each in ("bystander", name):
        catch_up(world.consumer(each))
    running = world.service("consumers.totals", name).says("stands at")
    world.connection.execute("DELETE FROM consumer_states WHERE name = %s", [name])
    world.send(4)
    running.says(f"{name} has a checkpoint, at position {world.start + 3}, but no total")
    found = re.search(r"DELETE FROM checkpoints[^;]*", running.output.read_text())
    assert found
    world.connection.execute(found[0])
    eventually(lambda: world.standing(name) == world.truth)
    assert world.standing(name) == (world.start + 4, Decimal(10))
    assert world.standing("bystander") == (world.start + 3, Decimal(6))


def test_an_exhausted_stream_that_may_not_be_deleted_is_no_new_beginning(world: World) -> None:
    world.log().redis.xadd(world.stream, {"x": "y"}, id=f"{2**64 - 1}-{2**64 - 1}")
    world.take(1)
    with limited_redis(world, "unlink") as url:
        streamer = world.service("streamer", REDIS_URL=url).says("trying again until it works")
        assert "started a new one" not in streamer.output.read_text()
