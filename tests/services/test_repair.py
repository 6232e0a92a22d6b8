"""Numbers drawn out of order: the leader holds the log and says why, and counts what slipped."""

import re

import pytest

from consumers import rides
from consumers.totals.total import Total
from tests.support.disasters import stranded
from tests.support.resets import ASK
from tests.support.world import (
    Consumer,
    World,
    catch_up,
    drain,
    eventually,
    exact,
    take,
    transaction,
)
from unified_log.errors import Overtaken, Unavailable
from unified_log.repair import pass_unstaged, repair
from unified_log.session_settings import INDEX_SCANS
from unified_log.streamer import checks
from unified_log.streamer.trimming import Caps, Trimmer
from unified_log.streamer.upkeep import Alarms, Upkeep

SCANS = "SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = 'rides'"

WITHOUT_IT = """
    INSERT INTO reconciliations (position, total_distance, rides, duration_seconds, compared)
    SELECT %s, sum(distance), count(*), 1, '{}' FROM rides
    WHERE id NOT IN (SELECT id FROM staged_log_records) RETURNING id
"""
RECOUNTED = "added up all rides anew: total 100.000 m in 4 rides, was total 70.000 m in 3 rides"

CHANGES = {
    "ALTER SEQUENCE log_position CACHE 10": "CACHE 10",
    "ALTER SEQUENCE log_position INCREMENT BY -1": "INCREMENT BY -1",
    "ALTER SEQUENCE log_position CYCLE": "CYCLE",
    "ALTER SEQUENCE log_position RESTART WITH {second}": "set back below record {fifth}",
}


def put_right(world: World, said: str) -> None:
    """As the leader advises."""
    with pytest.raises(Unavailable, match=said) as refusal:
        checks.require_rising_sequence(world.connection)
    advice = re.search(r"(ALTER SEQUENCE [A-Z_a-z0-9 ]*|SELECT setval.*)", str(refusal.value))
    assert advice
    world.connection.execute(advice[0], prepare=False)


def test_numbers_that_may_not_rise_are_refused_with_the_way_back(world: World) -> None:
    _, second, *_, fifth = world.send(1, 2, 3, 4, 5)
    for change, said in CHANGES.items():
        world.connection.execute(change.format(second=second))
        put_right(world, said.format(fifth=fifth))
        checks.require_rising_sequence(world.connection)


def test_a_leader_holds_the_log_while_numbers_may_not_rise(world: World) -> None:
    """Whether it finds the sequence so or it is changed while it looks; then it goes on."""
    world.take(1, 2, 3, 4, 5)
    leader = world.service("streamer").says("leading")
    eventually(lambda: world.staged() == 0)
    world.connection.execute("ALTER SEQUENCE log_position CACHE 10")
    leader.says("CACHE 10")
    world.service("streamer").says("CACHE 10")
    put_right(world, "CACHE 10")
    world.take(6)
    eventually(lambda: world.staged() == 0)
    assert [rides.ride(record).distance for record in world.records()] == [1, 2, 3, 4, 5, 6]
    assert exact(world)


def test_a_sequence_that_was_set_forward_is_no_fault(world: World) -> None:
    """Nor is a number that was rolled back."""
    with transaction(world) as rolled_back:
        take(rolled_back, 5)
    world.take(7)
    checks.require_rising_sequence(world.connection)
    world.connection.execute(f"ALTER SEQUENCE log_position RESTART WITH {world.start + 1000}")
    checks.require_rising_sequence(world.connection)


def test_a_sequence_that_was_set_back_would_draw_what_was_drawn_already(world: World) -> None:
    """Also where the rides are gone: what was sent was drawn all the same."""
    first, _, third = world.send(1, 2, 3)
    world.connection.execute("DELETE FROM rides")
    checks.require_rising_sequence(world.connection)
    world.connection.execute(f"ALTER SEQUENCE log_position RESTART WITH {first}")
    with pytest.raises(Unavailable, match=f"set back below record {third}"):
        checks.require_rising_sequence(world.connection)


def test_whoever_locks_a_table_of_records_holds_up_no_leader(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Such as VACUUM FULL: the log has other kinds, too."""
    world.send(1)
    own, log = world.connect(statement_timeout="3s", lock_timeout="0.3s"), world.log()
    upkeep = Upkeep(own, log, Trimmer(own, log, Caps(1000, 1000)), Alarms())
    with transaction(world) as holder:
        holder.execute("LOCK TABLE ratings IN ACCESS EXCLUSIVE MODE")
        upkeep.when_due(world.start + 1, ())
    assert "or has locked a table of records" in caplog.text


def test_rides_that_are_yet_to_be_sent_are_left_to_the_log(world: World) -> None:
    consumer = world.consumer()
    stranded(world)
    catch_up(consumer)
    world.take(50)
    assert repair(world.connect())[0] == [world.start + 2]
    assert world.staged() == 1
    drain(world.streamer())
    assert exact(world, consumer)


def test_stranded_rides_are_repaired_and_all_totals_end_exact(world: World) -> None:
    """One consumer is past them, one has yet to begin, and one reads on meanwhile."""
    past = world.consumer("past")
    world.consumer("behind")
    stranded(world)
    assert catch_up(past)[1] == 70
    late = world.start + 2
    world.service("streamer").says(f"never sent: records {late}; python -m unified_log.repair")
    reading = world.service("consumers.totals", "reading").says("stands at")
    eventually(lambda: world.standing("reading")[1] in (70, 100))
    repairer = world.service("unified_log.repair").says(
        f"repaired; the log will never contain these records: {late}"
    )
    assert repairer.ends() == 0
    assert "total behind, total past, total reading" in repairer.output.read_text()
    assert world.staged() == 0
    reading.says(RECOUNTED)
    world.take(50)
    eventually(lambda: world.standing("reading") == world.truth)
    for name in ("past", "behind"):
        assert exact(world, world.consumer(name))
    assert world.truth[1] == 150


def test_a_reset_that_was_asked_for_before_a_repair_does_not_undo_it(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It was added up without the stranded ride."""
    consumer = world.consumer()
    stranded(world)
    catch_up(consumer)
    last_sent = world.value("SELECT last_sent_id FROM streamer_state")
    reconciliation = world.value(WITHOUT_IT, last_sent)
    world.connection.execute(ASK, [reconciliation, "consumer0"])
    world.connection.execute("UPDATE consumer_states SET total_distance = 1")
    repair(world.connect())
    assert exact(world, consumer)
    assert RECOUNTED in caplog.text


def test_a_consumer_that_begins_after_a_repair_counts_the_repaired_rides(world: World) -> None:
    """The chain does not tell of them. So nothing of it is believed, and all of it is healed."""
    world.consumer()
    stranded(world)
    repair(world.connect())
    for taken in ([], [1000]):
        world.send(*taken)
        for name in ("consumer0", f"late{len(taken)}"):
            assert exact(world, world.consumer(name))
    assert world.truth[1] == 1100


def test_what_a_repair_has_revoked_is_not_called_foreign(world: World) -> None:
    stranded(world)
    repair(world.connect())
    ignored = world.consumer("late").run_once().ignored
    assert ignored.uncommitted.total() == ignored.total > 0


def test_entries_are_believed_while_the_sequence_is_set_back(world: World) -> None:
    world.send(1, 2, 3)
    world.connection.execute("ALTER SEQUENCE log_position RESTART")
    done = world.consumer().run_once()
    assert (len(done.records), done.ignored.total) == (3, 0)


def test_nothing_is_repaired_twice(world: World) -> None:
    world.consumer()
    stranded(world)
    assert repair(world.connect()) == ([world.start + 2], ["total consumer0"])
    assert repair(world.connect()) == ([], [])
    assert world.value("SELECT count(*) FROM checkpoints WHERE recount") == 1
    service = world.service("unified_log.repair").says("nothing to repair")
    assert service.ends() == 0


def test_nothing_is_repaired_while_more_would_come(world: World) -> None:
    stranded(world)
    world.connection.execute("ALTER SEQUENCE log_position CACHE 10")
    service = world.service("unified_log.repair")
    assert service.ends() == 1
    [line] = service.output.read_text().splitlines()
    assert line.startswith("not repaired: the sequence log_position was changed: it has CACHE 10")
    assert world.staged() == 1


def test_a_writer_that_may_commit_such_a_ride_is_waited_for(world: World) -> None:
    world.consumer()
    stranded(world)
    with transaction(world) as slow:
        take(slow, 60)
        repairer = world.service("unified_log.repair").says(
            "the log waits until this transaction ends"
        )
        assert world.staged() == 1
        slow.commit()
    repairer.says("repaired")
    assert repairer.ends() == 0


def test_a_record_staged_again_by_hand_is_not_counted_as_sent_again(world: World) -> None:
    """Beside one that is stranded, too: nobody can tell which is which, but who staged them."""
    consumer = world.consumer()
    stranded(world)
    [again] = world.send(1)
    world.connection.execute(
        "INSERT INTO staged_log_records VALUES (%s, 'ride.create', '{}')", [again]
    )
    with pytest.raises(Unavailable, match="1 of the stranded records was sent before"):
        repair(world.connect())
    assert not exact(world, consumer)
    world.connection.execute("DELETE FROM staged_log_records WHERE id = %s", [again])
    assert repair(world.connect())[0] == [world.start + 2]
    assert exact(world, consumer)
    sent = "SELECT records_sent - (SELECT count(*) FROM log_records) FROM streamer_state"
    assert world.value(sent) == 0


def test_rows_that_are_known_to_be_gone_are_no_records_that_were_sent_before(world: World) -> None:
    """Whoever has deleted them says so: nothing else tells, and none is taken for another."""
    consumer = world.consumer()
    stranded(world)
    world.connection.execute("DELETE FROM rides WHERE id IN (cell_start() + 1, cell_start() + 4)")
    for known, unknown in ((0, "2 of the stranded records were"), (1, "1 of the stranded .* was")):
        with pytest.raises(Unavailable, match=f"{unknown} sent .* 2 rows were deleted .*--gone 2$"):
            repair(world.connect(), known)
    command = world.service("unified_log.repair", "--gone", "-1")
    assert command.ends() == 2
    assert "argument --gone: '-1': a number is expected" in command.output.read_text()
    assert world.service("unified_log.repair", "--gone", "2").says("repaired").ends() == 0
    assert exact(world, consumer)


def test_only_rows_that_the_log_has_passed_are_read_anew_and_they_count_as_sent(
    world: World,
) -> None:
    world.take(1)
    [bare] = world.connection.execute("INSERT INTO rides (distance) VALUES (7) RETURNING id")
    world.take(2)
    for position in (world.start, bare[0], 10**18 - 1):
        command = world.service("unified_log.repair", "--from", str(position))
        assert command.ends() == 1
        assert f"behind it, and not {position}" in command.output.read_text()
    drain(world.streamer())
    pass_unstaged(world.connect(), bare[0])
    assert catch_up(world.consumer()) == world.truth
    sent = "SELECT records_sent - (SELECT count(*) FROM log_records) FROM streamer_state"
    assert world.value(sent) == 0


def test_a_recount_of_a_total_that_is_gone_is_no_bug(world: World) -> None:
    consumer = world.consumer()
    world.send(1)
    catch_up(consumer)
    world.connection.execute("DELETE FROM consumer_states")
    world.connection.execute("UPDATE checkpoints SET recount = true")
    with pytest.raises(Overtaken, match="the total of consumer0 is gone"):
        consumer.run_once()


def test_a_recount_reads_all_rides_in_the_order_of_their_table(world: World) -> None:
    """Though a reader's session scans by index."""
    world.send(1)
    world.connection.execute("ANALYZE rides")
    session = world.connect(**INDEX_SCANS)
    consumer = Consumer(world.log(), Total(session, "consumer0"))
    catch_up(consumer)
    with session.transaction():
        [before] = session.execute(SCANS)
        consumer.handler.recount(consumer.at.position)
        [after] = session.execute(SCANS)
        assert after[0] == before[0] + 1
        assert session.execute("SHOW enable_seqscan").fetchone() == ("off",)
