"""The streamer: nothing lost, nothing out of order, whatever fails and whenever."""

import logging

import pytest
import redis

from rocket_rides.faults import InjectedCrash
from rocket_rides.log import LogFull
from rocket_rides.process import Unavailable
from streamer import checks, trimming
from streamer.drain import NEXT_BATCH, Overtaken, Step
from tests.world import World, catch_up, drain, eventually, transaction


def chained(world: World) -> bool:
    """Whether each record's prev is the greatest id below its own."""
    ids = sorted({record.id for record in world.records()})
    before = dict(zip(ids, [0, *ids], strict=False))
    return all(record.prev == before[record.id] for record in world.records())


def test_five_thousand_staged_at_once_go_out_in_batches(world: World) -> None:
    ids = world.take(*range(1, 5001))
    streamer = world.streamer()
    sizes = list(iter(streamer.run_once, 0))
    assert sizes == [1000] * 5
    assert [record.id for record in world.records()] == ids
    assert chained(world)
    assert world.staged() == 0
    assert world.value("SELECT last_sent FROM streamer_state") == ids[-1]
    assert catch_up(world.consumer()).total == sum(range(1, 5001))


def test_a_row_staged_during_the_batch_is_not_deleted_with_it(world: World) -> None:
    streamer = world.streamer()
    world.take(1, 2)
    append = streamer._log.append

    def append_while_another_ride_commits(*batch: object) -> None:
        world.take(3)
        append(*batch)  # type: ignore[arg-type]

    streamer._log.append = lambda records, prev: append_while_another_ride_commits(records, prev)  # type: ignore[method-assign]
    assert streamer.run_once() == 2
    assert world.staged() == 1


@pytest.mark.parametrize("step", Step)
def test_a_crash_at_any_step_loses_nothing(world: World, step: Step) -> None:
    consumer = world.consumer()
    world.take(1, 2, 3)
    streamer = world.streamer()
    with pytest.raises(InjectedCrash):
        streamer.run_once(crash_at=step)
    sent_before_the_crash = len(world.records())
    assert sent_before_the_crash == (0 if step is Step.BEFORE_SEND else 3)
    assert (world.staged() == 0) == (step is Step.AFTER_COMMIT)

    world.take(4)
    drain(world.streamer())
    assert world.staged() == 0
    assert chained(world)
    at = catch_up(consumer)
    assert (at.ride_id, at.total) == world.truth


def test_a_batch_sent_twice_counts_once(world: World) -> None:
    consumer = world.consumer()
    world.take(*range(1, 1001))
    assert world.streamer().run_once(double_send=True) == 1000
    assert len(world.records()) == 2000
    first, second, third = consumer.run_once(), consumer.run_once(), consumer.run_once()
    assert (len(first.found), first.skipped) == (1000, 0)
    assert (len(second.found), second.skipped) == (0, 1000)  # and the checkpoint moved on
    assert third.found == []
    assert consumer.at.total == 500500


def test_two_streamers_at_once_never_lose_a_batch(world: World) -> None:
    world.take(1, 2)
    stale, leader = world.streamer(), world.streamer()
    assert leader.run_once() == 2
    world.take(3)
    stale._settled = leader.barrier.settled()  # a leader that slept through the other's batch
    with pytest.raises(Overtaken):
        stale.run_once()
    assert world.staged() == 1
    assert drain(leader) == 1
    assert catch_up(world.consumer()).total == 6


def test_a_second_streamer_stands_by_and_takes_over(world: World) -> None:
    leader = world.service("streamer").says("leading")
    standby = world.service("streamer").says("standing by")
    leader.kill()
    standby.says("leading")
    world.take(1)
    eventually(lambda: world.staged() == 0)


def test_a_stopped_leader_is_replaced_and_can_do_no_harm_when_it_wakes(world: World) -> None:
    leader = world.service("streamer", LEADER_TIMEOUT="1").says("leading")
    standby = world.service("streamer", LEADER_TIMEOUT="1").says("standing by")
    leader.pause()
    world.take(1, 2)
    standby.says("leading")
    eventually(lambda: world.staged() == 0)
    leader.resume()
    leader.says("trying again")
    leader.says("standing by")
    world.take(3)
    eventually(lambda: world.staged() == 0)
    assert chained(world)
    assert catch_up(world.consumer()).total == 6


def test_a_leader_stopped_inside_a_batch_is_replaced(world: World) -> None:
    leader = world.service("streamer", LEADER_TIMEOUT="1").says("leading")
    standby = world.service("streamer", LEADER_TIMEOUT="1").says("standing by")
    world.log().redis.client_pause(60_000, all=False)  # writes alone
    try:
        world.take(1, 2)
        in_a_batch = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        eventually(lambda: world.value(in_a_batch) == 1, "a batch in hand")
        leader.pause()
    finally:
        world.log().redis.client_unpause()
    standby.says("leading")
    eventually(lambda: world.staged() == 0)
    leader.resume()
    leader.says("standing by")
    assert chained(world)
    assert catch_up(world.consumer()).total == 3


def test_sigterm_finishes_the_batch_in_hand(world: World) -> None:
    streamer = world.service("streamer").says("leading")
    world.log().redis.client_pause(60_000, all=False)
    try:
        world.take(1, 2)
        in_a_batch = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
        eventually(lambda: world.value(in_a_batch) == 1, "a batch in hand")
        streamer.process.terminate()
    finally:
        world.log().redis.client_unpause()
    assert streamer.process.wait(30) == 0
    assert world.staged() == 0
    assert len(world.records()) == 2


def test_sigterm_ends_a_streamer_with_status_zero(world: World) -> None:
    streamer = world.service("streamer").says("leading")
    world.take(1)
    assert streamer.stop() == 0
    drain(world.streamer())
    assert len({record.id for record in world.records()}) == 1


def test_redis_out_of_memory_holds_the_backlog_and_loses_nothing(world: World) -> None:
    consumer = world.consumer()
    log = world.log().redis
    world.take(*range(1, 3001))
    streamer = world.streamer()
    streamer.run_once()
    log.config_set("maxmemory", 1)
    try:
        with pytest.raises(LogFull):
            streamer.run_once()
        assert world.staged() == 2000
        # The consumer has read nothing, so trimming goes past it; it will heal.
        assert trimming.make_room(world.connection, world.log()) == 500
        catch_up(consumer)
        assert trimming.make_room(world.connection, world.log()) == 499  # all but the last read
    finally:
        log.config_set("maxmemory", 0)
    drain(streamer)
    at = catch_up(consumer)
    assert (at.ride_id, at.total) == world.truth


def test_a_streamer_survives_a_full_redis_by_itself(world: World) -> None:
    control = world.log().redis
    streamer = world.service("streamer").says("leading")
    control.config_set("maxmemory", 1)
    try:
        world.take(1, 2, 3)
        streamer.says("out of memory")
    finally:
        control.config_set("maxmemory", 0)
    eventually(lambda: world.staged() == 0)
    assert catch_up(world.consumer()).total == 6


def test_a_read_only_redis_is_waited_for(world: World) -> None:
    streamer = world.streamer()
    control = world.log().redis
    world.take(1)
    control.execute_command("REPLICAOF", "127.0.0.1", "1")  # type: ignore[no-untyped-call]
    try:
        with pytest.raises(redis.RedisError):
            streamer.run_once()
    finally:
        control.execute_command("REPLICAOF", "NO", "ONE")  # type: ignore[no-untyped-call]
    assert world.staged() == 1
    assert drain(streamer) == 1


def test_trimming_follows_the_slowest_consumer(world: World) -> None:
    fast, slow = world.consumer("fast"), world.consumer("slow", batch_size=300)
    world.take(*range(1, 1001))
    drain(world.streamer())
    log = world.log()
    catch_up(fast)
    assert trimming.trim(world.connection, log, cap=10_000) == 0
    slow.run_once()
    assert trimming.trim(world.connection, log, cap=10_000) <= 300
    assert log.length() >= 700
    assert catch_up(slow).total == fast.at.total == 500500


def test_the_cap_trims_past_a_consumer_that_never_came_back(world: World) -> None:
    gone = world.consumer("gone")
    world.take(*range(1, 3001))
    drain(world.streamer())
    trimming.trim(world.connection, world.log(), cap=1000)
    assert world.log().length() < 1200
    assert catch_up(gone).total == sum(range(1, 3001))


def test_the_leader_trims_while_it_drains(world: World) -> None:
    world.consumer("gone")
    world.take(*range(1, 3001))
    world.service("streamer", STREAM_MAX_LENGTH="1000").says("leading")
    eventually(lambda: world.staged() == 0 and world.log().length() < 1200)


def test_records_overtaken_by_the_log_are_reported(world: World) -> None:
    world.take(1, 2)
    drain(world.streamer())
    world.connection.execute("INSERT INTO staged_log_records VALUES (1, 'create', 'ride', '{}')")
    assert checks.overtaken_records(world.connection, 2) == [1]
    world.service("streamer").says("never sent: records [1]")


def test_a_database_restored_to_an_earlier_time_holds_the_log(world: World) -> None:
    world.take(1, 2, 3)
    drain(world.streamer())
    world.connection.execute("DELETE FROM rides WHERE id > 1")
    world.connection.execute("UPDATE streamer_state SET last_sent = 1")
    with pytest.raises(Unavailable, match=f"redis-cli DEL {world.stream}"):
        checks.require_same_history(world.connection, world.log(), 1)

    streamer = world.service("streamer").says("redis-cli DEL")
    world.log().redis.delete(world.stream)
    streamer.says("leading")


def test_a_crash_between_sending_and_committing_is_no_change_of_history(world: World) -> None:
    world.take(1, 2)
    with pytest.raises(InjectedCrash):
        world.streamer().run_once(crash_at=Step.AFTER_SEND)
    checks.require_same_history(world.connection, world.log(), 0)


def test_a_forged_last_entry_does_not_hold_the_log(world: World) -> None:
    world.take(1, 2)
    drain(world.streamer())
    world.log().redis.xadd(
        world.stream, {"data": '{"id": 999999, "distance": 5}', "prev": "999998"}
    )
    checks.require_same_history(world.connection, world.log(), 2)


def test_servers_that_may_lose_data_are_warned_about(world: World) -> None:
    log = world.log()
    assert checks.durability_warnings(world.connection, log) == []
    log.redis.config_set("appendfsync", "everysec")
    try:
        unsafe = world.connect(synchronous_commit="off")
        warnings = checks.durability_warnings(unsafe, log)
        world.service("streamer").says("Redis has appendfsync everysec")
    finally:
        log.redis.config_set("appendfsync", "always")
    assert [w.split(",")[0].split(":")[0] for w in warnings] == [
        "Redis has appendfsync everysec",
        "Postgres has synchronous_commit off",
    ]


def test_no_batch_visits_rows_deleted_before_it(world: World) -> None:
    """Buffers touched by a batch's SELECT, after 100 records and after 20,000, without vacuum."""
    world.connection.execute("ALTER TABLE staged_log_records SET (autovacuum_enabled = off)")
    streamer = world.streamer()

    def buffers() -> int:
        world.take(*[5] * 100)
        query = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON)" + NEXT_BATCH
        values = [streamer.last_sent, 2**40, 1000]
        row = streamer._database.execute(query, values, prepare=False).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        drain(streamer)
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    fresh = buffers()
    for _ in range(20):
        world.take(*[5] * 1000)
        drain(streamer)
    assert buffers() <= fresh + 5


def test_a_streamer_without_its_servers_waits_for_them(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    streamer = world.service("streamer").says("leading")
    world.postgres.stop()
    streamer.says("trying again")
    world.postgres.start()
    world.take(1)
    eventually(lambda: world.staged() == 0)
    world.redis.stop()
    world.take(2)
    world.redis.start()
    eventually(lambda: world.staged() == 0)
    assert catch_up(world.consumer()).total == 3


def test_a_writer_that_hangs_is_cut_off_by_the_server(world: World) -> None:
    streamer = world.streamer()
    with transaction(world) as hanging:
        hanging.execute("SET idle_in_transaction_session_timeout = '100ms'")
        hanging.execute("INSERT INTO rides (distance) VALUES (5)")
        world.take(6)
        eventually(lambda: drain(streamer) == 1)
        hanging.close()
