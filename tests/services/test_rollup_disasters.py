"""What Redis or Postgres lose, and who wakes up late: every minute ends right all the same."""

import signal
import threading
from collections.abc import Callable

import psycopg
import pytest
import redis

from consumers.rollup import generation
from consumers.rollup.dirty import Mark, MarksLost
from consumers.rollup.generation import KIND, NAME, Generation
from consumers.rollup.ick import Ick, writes_key
from consumers.rollup.lead import Lead
from consumers.rollup.minutes import SESSION, compute
from consumers.rollup.step import RollupStep
from lab.chaos.backup import Backup
from rocket_rides.rollup import ick_keys, rollup_key
from tests.support.clusters import each_stream_server, restore
from tests.support.disasters import flush, stranded
from tests.support.entries import RIDE
from tests.support.rollup import (
    complete_to,
    exact,
    hurry,
    icks,
    is_complete,
    kept,
    lead,
    send_at,
    work,
)
from tests.support.world import World, eventually, transaction
from unified_log.errors import Overtaken, Unavailable
from unified_log.faults import InjectedCrash, crash_at
from unified_log.log import Staged
from unified_log.process import Stop
from unified_log.readers.checkpoint import Checkpoint
from unified_log.readers.running import IDLE_ROUND, rounds
from unified_log.repair import repair
from unified_log.waiting import Progress

MINUTES = [(f"2026-03-01 10:{minute:02}:30Z", minute + 1) for minute in range(10)]


def test_a_crash_at_any_step_costs_no_ride_and_leaves_no_ick_behind(world: World) -> None:
    """Each lead deletes the Ick of the one before, and no other."""
    Ick(world.log().redis).ickadd(f"{world.stream}/rollup/of-another-database", 1, "a minute")
    for number, step in enumerate(RollupStep):
        send_at(world, *MINUTES)
        with pytest.raises(InjectedCrash), crash_at(step):
            hurry(lead(world))
        assert complete_to(world) <= world.start + 10 * number
        last = lead(world)
        hurry(last)
        assert is_complete(world)
        assert icks(world) == {last.generation.name, "of-another-database"}


def test_a_process_that_is_killed_at_any_step_costs_no_ride(world: World) -> None:
    """Each of them follows on the one that was killed before."""
    for step in RollupStep:
        send_at(world, *MINUTES)
        killed = world.service("tests.support.killed_rollup", step.name)
        assert killed.ends() == -signal.SIGKILL
        assert not is_complete(world)
    world.service("consumers.rollup")
    eventually(lambda: is_complete(world))


def keys(world: World, leading: Lead) -> list[str]:
    """All of its Ick."""
    ick = rollup_key(world.stream, leading.generation.name)
    return [*ick_keys(ick), writes_key(ick)]


def lose_the_last_writes(world: World) -> None:
    """As an AOF may that is synced once a second."""
    world.redis.stop()
    file = world.redis.append_only_file
    content = file.read_bytes()
    file.write_bytes(content[: content.rindex(b"*", 0, content.rindex(b"INCR"))])
    world.redis.start()


def flush_and_go_on(world: World) -> None:
    """More marks follow, which would make the Ick anew."""
    flush(world)
    send_at(world, *MINUTES)


@pytest.mark.proves("marks-lost")
@each_stream_server
@pytest.mark.parametrize("lose", [flush, flush_and_go_on, lose_the_last_writes])
def test_marks_that_redis_loses_are_missed_and_made_again(
    world: World, lose: Callable[[World], None]
) -> None:
    leading = lead(world)
    send_at(world, *MINUTES)
    leading.run_once()
    leading.dirty.reserve(5)
    assert leading.dirty.count == 10
    lose(world)
    for loop in (work, lambda leading: leading.indexer.run_once(leading.reader.at.position)):
        with pytest.raises((MarksLost, redis.ConnectionError)):
            loop(leading)
    assert complete_to(world) == world.start
    assert lose is lose_the_last_writes or icks(world) == set()
    hurry(lead(world))
    assert is_complete(world)


@pytest.mark.proves("marks-lost")
@each_stream_server
def test_an_older_state_of_redis_that_comes_back_is_noticed(world: World) -> None:
    """After a fail-over without the last writes, or from a copy; though it has as many marks."""
    leading, log = lead(world), world.log()
    send_at(world, *MINUTES[:5])
    leading.run_once()
    older = {key: log.command("DUMP", key) for key in keys(world, leading)}
    leading.indexer.run_once(leading.reader.at.position)
    send_at(world, *MINUTES[5:])  # five other minutes
    leading.run_once()
    before = complete_to(world)
    for key, value in older.items():
        log.command("UNLINK", key)
        if value:
            log.command("RESTORE", key, 0, value)
    with pytest.raises(MarksLost):
        leading.indexer.run_once(leading.reader.at.position)
    assert complete_to(world) == before
    hurry(lead(world))
    assert is_complete(world)


def test_postgres_is_restored_and_draws_the_numbers_of_lost_rides_again(own_world: World) -> None:
    world = own_world
    send_at(world, *MINUTES[:2])
    hurry(lead(world))
    backup = Backup(world.postgres, "base")
    send_at(world, *MINUTES[2:5])
    leading = lead(world)
    hurry(leading)
    assert complete_to(world) == world.start + 5
    restore(world, backup, recovery_signal=True)
    assert complete_to(world) == world.start + 2
    with pytest.raises(psycopg.OperationalError):
        hurry(leading)
    send_at(world, *MINUTES[5:])
    hurry(lead(world))
    assert is_complete(world)
    assert len(kept(world)) == 7


def test_a_leader_that_was_overtaken_leaves_no_marks_behind(world: World) -> None:
    """Nobody would delete them: rollup_state names the Ick of its successor."""
    stale = lead(world)
    send_at(world, *MINUTES)
    before = stale.reader._ask()
    stale.reader._ask = lambda: before  # type: ignore[method-assign]
    successor = lead(world)
    with pytest.raises(Overtaken), stale.indexing():
        stale.run_once()
    assert icks(world) == set()
    hurry(successor)
    assert is_complete(world)


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
    assert first.stop() == second.stop() == 0


def test_of_two_who_begin_after_the_same_leader_one_leads(world: World) -> None:
    """The other would leave an Ick behind that nobody deletes."""
    one, other = (world.connect(**SESSION) for _ in range(2))
    before = generation.of_before(one)
    Generation(one, Checkpoint(one, KIND, NAME), before)
    with pytest.raises(Overtaken):
        Generation(other, Checkpoint(other, KIND, NAME), before)


def test_an_indexer_that_hangs_ends_the_lead(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.rollup.lead.LONGEST_ROUND", -1)
    with pytest.raises(Unavailable, match="hangs"):
        lead(world).run_once()


ATTEMPTS: list[Callable[[Lead], object]] = [
    lambda stale: stale.reader.run_once(),
    lambda stale: compute(stale.connection, stale.generation, ["2026-03-01 10:00Z"]),
    lambda stale: stale.generation.complete(stale.connection, 10),
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
        eventually(lambda: world.waiting == 1)
        successor.commit()
        attempting.join()
    assert outcome
    assert world.value("SELECT position FROM checkpoints") == complete_to(world) == world.start
    assert world.value("SELECT count(*) FROM set_aside_minutes") == 0
    assert kept(world) == []


def test_an_earlier_result_never_replaces_a_later_one(world: World) -> None:
    send_at(world, *MINUTES)
    leading = lead(world)
    hurry(leading)
    world.connection.execute("UPDATE ride_minutes SET rides = 77, upto = upto + 1")
    compute(world.connection, leading.generation, ["2026-03-01 10:00Z"])
    assert [rides for _, rides, _ in kept(world)] == [77] * 10


def test_rides_behind_the_logs_back_are_rolled_up_after_a_repair(world: World) -> None:
    """Also by a leader that goes on beside it, and where `complete_to` was below them anyway."""
    stranded(world)  # ride 2 comes after ride 4 was sent
    leading = lead(world)
    hurry(leading)
    assert exact(world)  # computed from the rides, after all
    world.connection.execute("UPDATE ride_minutes SET rides = 1, distance = 1")  # as if before
    assert repair(world.connect())[0] == [world.start + 2]
    assert complete_to(world) == world.start + 1
    with pytest.raises(Overtaken):
        leading.run_once()  # no ride comes that would tell
    hurry(lead(world))
    assert is_complete(world)


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
    [first] = world.send(1)
    streamer = world.streamer()
    ids = world.take(*[1] * 20)
    world.log().append(
        [Staged(i, RIDE, f'{{"id": {i}, "distance": 1}}') for i in ids], first, streamer.term
    )
    leading, stop = lead(world, batch_size=20), Recording(15)
    rounds(leading, [], leading.connection, Progress(), stop, crash_rate=0)
    assert min(stop.pauses[-2:]) >= IDLE_ROUND / 2
    assert leading.reader.at.position == first
