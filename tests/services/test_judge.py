"""The specification judges recordings: an honest one is allowed, and none that was tampered with.

The recording is of a world with everything in it that the core has; each test changes one step of
it, and the judge must refuse that step.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from demo.embedded.servers import Redis
from lab.chaos.backup import Backup
from lab.chaos.observer import Told
from lab.chaos.trace.judge import lines
from lab.chaos.trace.pgoutput import Row
from lab.chaos.trace.recording import Commit, Life, Limits, Loss, Step
from rocket_rides.terms import Term
from tests.support.clusters import restore
from tests.support.recorded import Tape, recorded_world, recording, steps_of
from tests.support.tampering import changed, commits, judged, plus, refused_at, which
from tests.support.world import World, catch_up, drain, eventually, take, transaction

REACHED = "SELECT pg_current_wal_insert_lsn()::text"
IS_TAKEN = "SELECT count(*) FROM pg_replication_slots WHERE confirmed_flush_lsn >= %s::pg_lsn"


def stranger_writes(world: World) -> None:
    world.log().append([(9, '{"id": 9, "distance": 777.000}')], 8, Term("0123456789abcdef", 8))


def play(world: World) -> None:
    """Leaders that take turns, a slow writer, a batch sent twice, strangers, and a trimmed log."""
    consumer = world.consumer(batch_size=5)
    streamer = world.streamer(batch_size=3)
    with transaction(world) as slow:
        take(slow, 1)
        world.take(2, 3)
        streamer.run_once()
        slow.commit()
    streamer.run_once(double_send=True)
    catch_up(consumer)
    stranger_writes(world)
    world.take(4, 5, 6)
    streamer = world.streamer(batch_size=3)
    drain(streamer)
    catch_up(consumer)
    world.take(7, 8)
    drain(streamer)
    world.take(9)
    drain(streamer)
    catch_up(consumer)


@pytest.fixture(scope="module")
def honest(
    redis_of_kind: Callable[[str], Redis], prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Step]:
    return steps_of(play, redis_of_kind("valkey"), prepared, tmp_path_factory.mktemp("x"))


def play_with_a_restore(world: World, tape: Tape) -> None:
    """What one of its readers is set back to was trimmed, and what was undone is said again."""
    streamer, consumer = world.streamer(), world.consumer(batch_size=2)
    world.take(1, 2)
    drain(streamer)
    catch_up(consumer)
    world.take(3, 4)
    drain(streamer)
    backup = Backup(world.postgres, "first")
    world.take(5)
    drain(streamer)
    catch_up(consumer)
    [(reached,)] = world.connection.execute(REACHED)
    world.take(6)
    eventually(lambda: world.value(IS_TAKEN, reached), "the recorder")
    eventually(lambda: len(tape.told) == 5, "the onlooker")
    world.log().trim_before(consumer.at.redis_id, exactly=True)
    restore(world, backup, recovery_signal=False)
    eventually(lambda: tape.recorder.lives == 2, "another life")
    term = Term(tape.told[-1].record.term.decode(), 0)
    world.log().append([(n, f'{{"id": {n}, "distance": 777.000}}') for n in (5, 6)], 4, term)
    world.take(50, 60)
    drain(world.streamer())
    catch_up(world.consumer(batch_size=2))


@pytest.fixture(scope="module")
def restored(
    redis_of_kind: Callable[[str], Redis], prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Step]]:
    with recorded_world(redis_of_kind("valkey"), prepared, tmp_path_factory.mktemp("y")) as world:
        with recording(world) as tape:
            play_with_a_restore(world, tape)
        yield tape.steps


def test_an_honest_recording_is_allowed(honest: list[Step]) -> None:
    verdict = judged(honest)
    assert verdict.refused == "", verdict
    core = {"takes", "begins", "moves last_sent", "sends twice", "counts"}
    assert core | {"skips what was sent again", "disbelieves"} <= {*+verdict.met}
    assert "counts, unseen" not in +verdict.met
    assert next(lines(verdict)).endswith(" steps, all allowed")


def test_what_a_restore_leaves_in_the_log_is_allowed(restored: list[Step]) -> None:
    """A zombie's entries beside the batch that it repeats, and a reader that is set back."""
    verdict = judged(restored)
    assert verdict.refused == "", verdict
    assert verdict.met["begins a life"] == 2
    assert verdict.met["moves last_sent"] == 4
    assert verdict.met["disbelieves"]
    assert verdict.met["heals"]


def test_a_zombies_distance_is_refused(restored: list[Step]) -> None:
    """As that of the batch beside which it stands."""
    true, false = (
        next(s for s in restored if isinstance(s, Told) and is_of(s, ride, distance))
        for ride, distance in ((5, 5), (5, 777))
    )
    gone = [step for step in restored if step is not true]
    at = which(restored, "streamer_state")[2]
    assert is_of(false, 5, 777)
    assert refused_at(judged(gone), at)


def is_of(told: Told, ride: int, distance: int) -> bool:
    return told.record.id == ride and told.record.distance == distance


def test_a_checkpoint_moved_by_one_is_refused(honest: list[Step]) -> None:
    for at in which(honest, "consumer_states"):
        for by in ("-1", "1"):
            tampered = changed(honest, at, "checkpoints", last_ride_id=plus(by))
            assert refused_at(judged(tampered), at)


@pytest.mark.parametrize("off", ["0.001", "0.0009"])
def test_a_total_that_is_off_by_a_millimetre_or_less_is_refused(
    honest: list[Step], off: str
) -> None:
    for at in which(honest, "consumer_states"):
        tampered = changed(honest, at, "consumer_states", total_distance=plus(off))
        assert refused_at(judged(tampered), at)


def test_a_total_of_what_the_log_says_and_no_ride_does_is_refused(honest: list[Step]) -> None:
    """Beside the true entry stands another, of the same leader, and of a metre more."""
    at = which(honest, "consumer_states")[-1]
    true = next(s for s in honest if isinstance(s, Told) and is_of(s, 9, 9))
    milliseconds, _, number = true.redis_id.partition("-")
    before = f"{int(milliseconds) - 1}-{number}"
    false = replace(true, redis_id=before, record=replace(true.record, distance=Decimal(10)))
    tampered = changed(honest, at, "consumer_states", total_distance=plus("1"))
    tampered.insert(tampered.index(true), false)
    assert refused_at(judged(tampered), at)


def test_an_entry_that_came_later_under_a_lower_id_was_not_read(honest: list[Step]) -> None:
    """The clock of Redis was ahead, and the log is lost since."""
    false = next(s for s in honest if isinstance(s, Told) and s.record.distance == 777)
    later = replace(false, redis_id="1-0", at=false.at + 100)
    assert judged([*honest, later]).refused == ""
    assert judged([*honest, replace(later, at=false.at)]).refused


@pytest.mark.parametrize("more", ["1", "-1"])
@pytest.mark.parametrize("column", ["gaps_healed", "resends_skipped", "unbelieved_entries"])
def test_what_was_not_met_is_not_counted(honest: list[Step], column: str, more: str) -> None:
    at = which(honest, "consumer_states")[-1]
    tampered = changed(honest, at, "checkpoints", **{column: plus(more)})
    assert refused_at(judged(tampered), at)


def test_a_batch_before_the_one_that_it_follows_is_refused(honest: list[Step]) -> None:
    """The log has it in another order."""
    at = which(honest, "streamer_state")[-1]
    last = next(s for s in honest if isinstance(s, Told) and is_of(s, 9, 9))
    first = next(s for s in honest if isinstance(s, Told))
    others = [step for step in honest if step is not last]
    others.insert(others.index(first), last)
    verdict = judged(others)
    assert refused_at(verdict, at)
    assert "in another order" in verdict.refused


def test_two_commits_in_another_order_are_refused(honest: list[Step]) -> None:
    """What is counted before it was sent; what is sent before it was taken."""
    for table in ("consumer_states", "streamer_state"):
        at = which(honest, table)[0]
        told = commits(honest)
        one, other = honest.index(told[at - 1]), honest.index(told[at])
        swapped = [*honest]
        swapped[one], swapped[other] = honest[other], honest[one]
        assert refused_at(judged(swapped), at - 1)


def test_an_entry_that_is_counted_before_its_commit_is_refused(honest: list[Step]) -> None:
    """The last commit of the streamer is left out, but not what was counted after it."""
    last, counted = which(honest, "streamer_state")[-1], which(honest, "consumer_states")[-1]
    gone = commits(honest)[last]
    assert refused_at(judged([step for step in honest if step is not gone]), counted - 1)


def test_a_strangers_entry_that_counts_is_refused(honest: list[Step]) -> None:
    at = which(honest, "consumer_states")[-1]
    tampered = changed(honest, at, "consumer_states", total_distance=plus("777"))
    assert refused_at(judged(tampered), at)


def test_a_record_that_is_deleted_and_was_not_sent_is_refused(honest: list[Step]) -> None:
    at = which(honest, "streamer_state")[-1]
    step = commits(honest)[at]
    assert isinstance(step, Commit)
    ride = next(int(c.row["id"] or 0) for c in step.changes if c.what == "D")
    unsent = [
        known for known in honest if not (isinstance(known, Told) and is_of(known, ride, ride))
    ]
    assert refused_at(judged(unsent), at)
    hidden = [*unsent, Loss("redis-cut", step.at - 1, step.at)]
    assert judged(hidden).refused == ""


def test_what_a_stale_leader_commits_is_refused(honest: list[Step]) -> None:
    """The batch was appended under the term before."""
    at = which(honest, "streamer_state")[-1]
    terms = [
        change.row["term"]
        for step in commits(honest)
        if isinstance(step, Commit)
        for change in step.changes
        if change.table == "terms"
    ]
    old, new = (str(term).encode() for term in terms)
    stale = [
        replace(known, record=replace(known.record, term=old))
        if isinstance(known, Told) and known.record.term == new and known.record.id > 8
        else known
        for known in honest
    ]
    verdict = judged(stale)
    assert refused_at(verdict, at)
    assert "newest term" in verdict.refused


def test_what_makes_no_sense_is_refused(honest: list[Step]) -> None:
    at = which(honest, "rides", "I")[-1]
    for data in ("{", '{"id": 9}'):
        assert refused_at(judged(changed(honest, at, "staged_log_records", data=data)), at)
    assert refused_at(judged(changed(honest, at, "rides", distance="much")), at)


def test_a_late_ride_is_refused(honest: list[Step]) -> None:
    """One that is taken below what was sent."""
    at = which(honest, "rides", "I")[-1]
    tampered = changed(honest, at, "rides", id="3")
    tampered = changed(
        tampered, at, "staged_log_records", id="3", data='{"id": 3, "distance": 9.000}'
    )
    assert refused_at(judged(tampered), at)


def test_a_batch_of_which_some_was_hidden_is_judged_by_the_rest(honest: list[Step]) -> None:
    """What was seen must follow what it says; and no fault excuses another distance."""
    at = which(honest, "streamer_state")[0]
    step = commits(honest)[at]
    assert isinstance(step, Commit)
    hidden = [*honest, Loss("redis-cut", step.at - 1, step.at)]
    first, second = (
        [s for s in hidden if isinstance(s, Told) and s.record.id == ride] for ride in (1, 2)
    )
    unseen = [known for known in hidden if known not in first]
    assert judged(unseen).refused == ""
    wrong = [
        replace(s, record=replace(s.record, distance=s.record.distance + 1)) if s in second else s
        for s in unseen
    ]
    assert refused_at(judged(wrong), at)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("rides", {"id": "77", "distance": "1.000"}),
        ("staged_log_records", {"id": "77", "data": '{"id": 77, "distance": 1.000}'}),
    ],
)
def test_a_life_begins_right(honest: list[Step], table: str, row: Row) -> None:
    life = next(step for step in honest if isinstance(step, Life))
    wrong = replace(life, tables=life.tables | {table: [*life.tables[table], row]})
    assert refused_at(judged([wrong if step is life else step for step in honest]), 0)


def test_nothing_is_judged_of_nothing(honest: list[Step]) -> None:
    verdict = judged([step for step in honest if isinstance(step, Limits)])
    assert (verdict.steps, verdict.refused) == (0, "")


def test_the_refused_step_is_shown_with_what_is_around_it(honest: list[Step]) -> None:
    at = which(honest, "consumer_states")[1]
    verdict = judged(changed(honest, at, "consumer_states", total_distance="0.001"))
    assert [line.startswith("> ") for line in verdict.around].index(True) == min(at, 10)
