"""What Redis or Postgres lose, and who wakes up late: every minute ends right all the same."""

import threading
from collections.abc import Callable
from enum import Enum

import psycopg
import pytest
import redis

from consumers.checkpoint import Checkpoint
from consumers.rollup import generation, marker
from consumers.rollup.__main__ import lead as lead_until
from consumers.rollup.dirty import Mark, MarksLost
from consumers.rollup.generation import KIND, NAME, Generation
from consumers.rollup.lead import Lead
from consumers.rollup.minutes import SESSION, compute
from consumers.rollup.report import Report
from consumers.rollup.step import Step
from consumers.running import IDLE_ROUND
from lab.chaos.backup import Backup
from rocket_rides import settings
from rocket_rides.errors import Overtaken
from rocket_rides.faults import InjectedCrash, crash_at, listening
from rocket_rides.process import Stop
from rocket_rides.waiting import Progress
from streamer.mend import mend
from tests.support.clusters import restore
from tests.support.disasters import (
    Rides,
    crash_postgres,
    crash_redis,
    cut_newest,
    flush,
    restart_postgres,
    restart_redis,
    stranded,
)
from tests.support.rollup import (
    complete_to,
    exact,
    hurry,
    ick,
    icks,
    is_complete,
    kept,
    lead,
    send,
    send_at,
)
from tests.support.world import World, drain, eventually, take, transaction

MINUTES = [(f"2026-03-01 10:{minute:02}:30Z", minute + 1) for minute in range(10)]


def test_a_crash_at_any_step_costs_no_ride_and_leaves_no_ick_behind(world: World) -> None:
    for number, step in enumerate(Step):
        send_at(world, *MINUTES)
        with pytest.raises(InjectedCrash), crash_at(step):
            hurry(lead(world))
        assert complete_to(world) <= 10 * number
        hurry(lead(world))
        assert is_complete(world)
        assert len(icks(world)) == 1


@pytest.mark.proves("marks-lost")
@pytest.mark.stream_servers
def test_a_flush_with_dirty_minutes_and_a_ride_right_after_it(world: World) -> None:
    """The next mark must not make a new Ick, in which the lost minutes would be missing."""
    send_at(world, *MINUTES)
    leading = lead(world)
    leading.reader.run_once()
    assert leading.dirty.count == 10
    flush(world)
    send(world, 5)
    with pytest.raises(redis.ResponseError, match="Ick"):
        hurry(leading)
    assert complete_to(world) == 0
    hurry(lead(world))
    assert is_complete(world)


@pytest.mark.stream_servers
def test_a_flush_with_dirty_minutes_and_no_ride_after_it(world: World) -> None:
    send_at(world, *MINUTES)
    leading = lead(world)
    leading.reader.run_once()
    reserved = leading.dirty.reserve(3)
    flush(world)
    attempts: list[Callable[[], object]] = [
        lambda: leading.dirty.commit(reserved),
        lambda: hurry(leading),
    ]
    for attempt in attempts:
        with pytest.raises((redis.ResponseError, MarksLost)):
            attempt()
    hurry(lead(world))
    assert is_complete(world)


@pytest.mark.parametrize("lost", ["pset", "cset"])
def test_a_set_of_the_ick_that_is_lost_alone_is_missed(world: World, lost: str) -> None:
    """Redis has no empty sets, so the Ick looks as if nothing was dirty."""
    send_at(world, *MINUTES)
    leading = lead(world)
    leading.reader.run_once()
    reserved = leading.dirty.reserve(3)
    assert world.log().redis.delete(f"{ick(world)}/ick/{{{ick(world)}}}/{lost}") == 1
    with pytest.raises(MarksLost):
        leading.indexer.run_once(leading.reader.at.ride_id)
    assert complete_to(world) == 0
    assert reserved
    hurry(lead(world))
    assert is_complete(world)


def test_redis_loses_the_newest_marks_and_the_connection_lives(world: World) -> None:
    """As when a proxy fails over to a replica: it is another history of writes."""
    leading = lead(world)
    send_at(world, *MINUTES)
    leading.reader.run_once()
    control = world.log()
    control.command("REPLICAOF", "127.0.0.1", "1")
    control.command("REPLICAOF", "NO", "ONE")
    with pytest.raises(MarksLost):
        hurry(leading)
    assert complete_to(world) == 0
    hurry(lead(world))
    assert is_complete(world)


@pytest.mark.stream_servers
def test_redis_is_restarted_without_its_last_marks(world: World) -> None:
    leading = lead(world)
    send_at(world, *MINUTES)
    leading.reader.run_once()
    assert leading.dirty.count == 10
    world.redis.stop()
    file = world.redis.append_only_file
    content = file.read_bytes()
    newest = content.rindex(b"ZADD")
    file.write_bytes(content[: content.rindex(b"*", 0, newest)])
    world.redis.start()
    with pytest.raises(redis.ConnectionError):
        hurry(leading)
    hurry(lead(world))
    assert is_complete(world)


def test_a_leader_that_was_overtaken_while_it_made_its_ick_leaves_none_behind(world: World) -> None:
    """Nobody would delete it: rollup_state names the one of its successor."""
    successors: list[Lead] = []

    def succeed(step: Enum) -> None:
        if step is Step.AFTER_DRAW and not successors:
            with listening(lambda _: None):
                successors.append(lead(world))

    with listening(succeed), pytest.raises(Overtaken):
        lead(world)
    assert icks(world) == {successors[0].generation.name}
    send_at(world, *MINUTES)
    hurry(successors[0])
    assert is_complete(world)


def test_a_crash_halfway_through_marking_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader starts at ride 0 and marks piece by piece; the next one has to start there again."""
    monkeypatch.setattr(marker, "PIECE", 4)
    send_at(world, *MINUTES)
    first = lead(world)
    first.reader.run_once()
    assert 0 < first.reader.at.ride_id < 10
    with pytest.raises(InjectedCrash), crash_at(Step.AFTER_MARKS):
        first.reader.run_once()
    second = lead(world)
    assert second.reader.at.ride_id == 0
    assert second.dirty.count == 0
    hurry(second)
    assert second.marker.marked == 10
    assert is_complete(world)


@pytest.mark.parametrize("new", [1, 3, 6], ids=["fewer", "as many", "more"])
def test_postgres_is_restored_and_draws_the_numbers_of_lost_rides_again(
    own_world: World, new: int
) -> None:
    world = own_world
    send_at(world, *MINUTES[:2])
    hurry(lead(world))
    backup = Backup(world.postgres, "base")
    send_at(world, *MINUTES[2:5])
    leading = lead(world)
    hurry(leading)
    assert complete_to(world) == 5
    restore(world, backup, recovery_signal=new != 3)
    assert complete_to(world) == 2
    with pytest.raises(psycopg.OperationalError):
        hurry(leading)
    send_at(world, *MINUTES[5 : 5 + new])
    hurry(lead(world))
    assert is_complete(world)
    assert len(kept(world)) == 2 + min(new, 5)


def test_a_leader_that_hangs_is_replaced_and_wakes_up(world: World) -> None:
    """Only the one that is to hang has little time: the other may well be slow."""
    world.service("streamer").says("leading")
    first = world.service("consumers.rollup", LEADER_TIMEOUT="2").says("leading")
    second = world.service("consumers.rollup").says("standing by")
    world.take(1)
    eventually(lambda: is_complete(world))
    first.pause()
    world.take(2)
    second.says("leading")
    world.take(3)
    eventually(lambda: is_complete(world))
    first.resume()
    first.says("standing by")
    world.take(4)
    eventually(lambda: is_complete(world))
    assert len(icks(world)) == 1
    second.kill()
    world.take(5)
    eventually(lambda: is_complete(world))
    assert first.stop() == 0


def test_whoever_was_replaced_can_neither_move_nor_commit_anything(world: World) -> None:
    """Even one whose session lives, and whose Ick is there once more."""
    send_at(world, *MINUTES)
    stale = lead(world)
    stale.reader.run_once()
    new = lead(world)
    new.reader.run_once()
    with pytest.raises(redis.ResponseError):
        stale.dirty.add([Mark("2026-03-01 10:00Z", 1)])
    stale.dirty._ick.ickadd(stale.dirty._key)
    before = new.dirty.count, new.reader.at, kept(world)
    send(world, 5)
    with pytest.raises(Overtaken):
        stale.reader.run_once()
    with pytest.raises(Overtaken):
        compute(world.connection, stale.generation, ["2026-03-01 10:00Z"])
    with pytest.raises(Overtaken):
        stale.generation.complete(10)
    assert (new.dirty.count, new.reader.at, kept(world)) == before
    assert complete_to(world) == 0
    hurry(new)
    assert is_complete(world)


def test_of_two_who_begin_after_the_same_leader_one_leads(world: World) -> None:
    """The other would leave an Ick behind that nobody deletes."""
    one, other = (world.connect(**SESSION) for _ in range(2))
    before = generation.of_before(one)
    Generation(one, Checkpoint(one, KIND, NAME), before)
    with pytest.raises(Overtaken):
        Generation(other, Checkpoint(other, KIND, NAME), before)


ATTEMPTS: list[Callable[[Lead], object]] = [
    lambda stale: stale.reader.run_once(),
    lambda stale: compute(stale.connection, stale.generation, ["2026-03-01 10:00Z"]),
    lambda stale: stale.generation.complete(10),
    lambda stale: stale.indexer._set_aside(Mark("2026-03-01 10:00Z", 1), "in vain", 1),
]


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=["move", "compute", "complete", "set aside"])
def test_what_a_stale_leader_attempts_waits_for_its_successor_and_is_refused(
    world: World, attempt: Callable[[Lead], object]
) -> None:
    """The checkpoint stands where the successor puts it: only the generation tells them apart."""
    stale = lead(world)
    send_at(world, *MINUTES)
    with transaction(world) as successor:
        successor.execute("UPDATE rollup_state SET generation = repeat('0', 16)")
        outcome: list[BaseException] = []

        def run() -> None:
            try:
                attempt(stale)
            except Overtaken as overtaken:
                outcome.append(overtaken)

        attempting = threading.Thread(target=run)
        attempting.start()
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        eventually(lambda: world.value(waiting) == 1)
        successor.commit()
        attempting.join()
    assert outcome
    assert world.value("SELECT last_ride_id FROM checkpoints") == complete_to(world) == 0
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 0
    assert kept(world) == []


def test_a_ride_that_commits_late_into_a_minute_just_computed(world: World) -> None:
    with transaction(world) as late:
        late.execute("SELECT now()")  # its minute is that of its transaction's start
        send(world, 1)
        leading = lead(world)
        hurry(leading)
        assert is_complete(world)
        take(late, 2)
        late.commit()
    hurry(leading)
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 1  # not sent yet
    assert world.value("SELECT max(upto) FROM ride_minutes") == 1
    drain(world.streamer())
    hurry(leading)
    assert is_complete(world)
    assert world.value("SELECT sum(rides) FROM ride_minutes") == 2


def test_an_earlier_result_never_replaces_a_later_one(world: World) -> None:
    send_at(world, *MINUTES)
    leading = lead(world)
    hurry(leading)
    world.connection.execute("UPDATE ride_minutes SET rides = 77, upto = upto + 1")
    compute(world.connection, leading.generation, ["2026-03-01 10:00Z"])
    assert [rides for _, rides, _ in kept(world)] == [77] * 10


def test_rides_behind_the_logs_back_are_rolled_up_after_a_mend(world: World) -> None:
    """Also by a leader that goes on beside it, and where `complete_to` was below them anyway."""
    stranded(world)  # ride 2 comes after ride 4 was sent
    leading = lead(world)
    hurry(leading)
    assert exact(world)  # computed from the rides, after all
    world.connection.execute("UPDATE ride_minutes SET rides = 1, distance = 1")  # as if before
    assert mend(world.connect())[0] == [2]
    assert complete_to(world) == 1
    with pytest.raises(Overtaken):
        leading.run_once()  # no ride comes that would tell
    hurry(lead(world))
    assert is_complete(world)
    assert len(icks(world)) == 1


@pytest.mark.stream_servers
def test_one_disaster_after_another_in_mid_flow(world: World) -> None:
    faults = {"CRASH_RATE": "0.1", "LEADER_TIMEOUT": "1"}
    world.service("streamer", DOUBLE_SEND_RATE="0.1").says("leading")
    world.service("consumers.rollup", **faults).says("leading")
    world.service("consumers.rollup", **faults).says("standing by")
    rides = Rides(world)
    try:
        for disaster in (
            flush,
            restart_redis,
            crash_redis,
            cut_newest,
            restart_postgres,
            crash_postgres,
        ):
            rides.flow(40)
            disaster(world)
        rides.flow(40)
    finally:
        rides.stop()
    eventually(lambda: is_complete(world), "every minute right")


class Recording(Stop):
    """Waits for nothing, and asks to stop after so many pauses."""

    def __init__(self, pauses: int) -> None:
        super().__init__()
        self.left = pauses
        self.pauses: list[float] = []

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        if len(self.pauses) == self.left:
            self.ask()
        return bool(self)


def test_a_full_batch_that_is_sent_and_not_committed_is_asked_for_ever_less_often(
    world: World,
) -> None:
    """The streamer died in between, and nobody leads: both kinds of readers wait."""
    send(world, 1)
    streamer = world.streamer()
    ids = world.take(*[1] * 20)
    world.log().append([(i, f'{{"id": {i}, "distance": 1}}') for i in ids], 1, streamer.term)
    config = settings.Settings(batch_size=20)
    stop = Recording(15)
    lead_until(world.connect(**SESSION), world.log(), config, stop, Progress(), Report())
    assert min(stop.pauses[-2:]) >= IDLE_ROUND / 2
    assert complete_to(world) == 1
