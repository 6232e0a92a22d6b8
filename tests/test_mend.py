"""Numbers drawn out of order: the leader holds the log and says why, and what slipped is mended."""

import re

import psycopg
import pytest

from rocket_rides.process import Unavailable
from streamer import checks
from streamer.mend import mend
from tests.world import World, catch_up, drain, eventually, take, transaction

CHANGES = {
    "ALTER SEQUENCE log_position CACHE 10": "CACHE 10",
    "ALTER SEQUENCE log_position INCREMENT BY 7": "INCREMENT BY 7",
    "ALTER SEQUENCE log_position INCREMENT BY -1": "INCREMENT BY -1",
    "ALTER SEQUENCE log_position CYCLE": "CYCLE",
    "ALTER SEQUENCE log_position RESTART WITH 2": "set back to 0, and ride 5 is there",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_leader_holds_the_log_while_numbers_may_not_rise(world: World, change: str) -> None:
    """Whether it finds the sequence so or it is changed under its eyes; and goes on once mended."""
    world.take(1, 2, 3, 4, 5)
    leader = world.service("streamer").says("leading")
    eventually(lambda: world.staged() == 0)
    world.connection.execute(change)
    leader.says(CHANGES[change])
    with pytest.raises(Unavailable) as refusal:
        checks.require_rising_sequence(world.connection)
    world.service("streamer").says(CHANGES[change])
    advice = re.search(r"(ALTER SEQUENCE [A-Z_a-z0-9 ]*|SELECT setval.*)", str(refusal.value))
    assert advice
    world.connection.execute(advice[0], prepare=False)
    world.take(6)
    eventually(lambda: world.staged() == 0)
    assert [record.distance for record in world.records()] == [1, 2, 3, 4, 5, 6]
    at = catch_up(world.consumer())
    assert (at.ride_id, at.total) == world.truth


def test_a_sequence_as_the_migrations_made_it_is_right(world: World) -> None:
    checks.require_rising_sequence(world.connection)
    with transaction(world) as rolled_back:
        take(rolled_back, 5)
    world.take(7)
    checks.require_rising_sequence(world.connection)


def overtaken(world: World) -> None:
    """A session draws numbers ahead, and others overtake it: its second ride comes too late."""
    with psycopg.connect(world.postgres_url, autocommit=True) as ahead:
        world.connection.execute("ALTER SEQUENCE log_position CACHE 3")
        take(ahead, 10)  # draws 1, 2 and 3
        world.take(20)
        drain(world.streamer())
        take(ahead, 30)
        world.connection.execute(checks.SETTINGS)
        world.take(40)
        drain(world.streamer())


def test_overtaken_rides_are_mended_and_all_totals_end_exact(world: World) -> None:
    """One consumer is past them, one has yet to begin, and one reads on meanwhile."""
    past = world.consumer("past")
    world.consumer("behind")
    overtaken(world)
    assert catch_up(past).total == 70
    streamer = world.service("streamer").says("never sent: records [2]; python -m streamer.mend")
    reading = world.service("consumers", "reading").says("stands at")
    eventually(lambda: world.standing("reading")[1] in (70, 100))
    mender = world.service("streamer.mend").says("mended: rides 2 will never be in the log")
    assert mender.process.wait(30) == 0
    assert "behind, past, reading" in mender.output.read_text()
    assert world.staged() == 0
    reading.says("was reset by reconciliation")
    for name in ("past", "behind"):
        at = catch_up(world.consumer(name))
        assert (at.ride_id, at.total) == world.truth
    eventually(lambda: world.standing("reading") == world.truth)
    world.take(50)
    for name in ("past", "behind", "reading"):
        eventually(lambda name=name: catch_up_to(world, name))  # type: ignore[misc]
    assert streamer.stop() == 0
    assert world.truth[1] == 150


def catch_up_to(world: World, name: str) -> bool:
    if name != "reading":
        catch_up(world.consumer(name))
    return world.standing(name) == world.truth


def test_nothing_is_mended_twice(world: World) -> None:
    world.consumer()
    overtaken(world)
    assert mend(world.connect()) == ([2], ["consumer0"])
    assert mend(world.connect()) == ([], [])
    assert world.value("SELECT count(*) FROM resets") == 1
    service = world.service("streamer.mend").says("nothing to mend")
    assert service.process.wait(30) == 0


def test_nothing_is_mended_while_more_would_come(world: World) -> None:
    overtaken(world)
    world.connection.execute("ALTER SEQUENCE log_position CACHE 10")
    service = world.service("streamer.mend")
    assert service.process.wait(30) == 1
    [line] = service.output.read_text().splitlines()
    assert line.startswith("not mended: the sequence log_position was changed: it has CACHE 10")
    assert world.staged() == 1


def test_a_writer_that_may_commit_such_a_ride_is_waited_for(world: World) -> None:
    world.consumer()
    overtaken(world)
    with transaction(world) as slow:
        take(slow, 60)
        mender = world.service("streamer.mend").says("the log waits for an open transaction")
        assert world.staged() == 1
        slow.commit()
    mender.says("mended")
    assert mender.process.wait(30) == 0


def test_a_record_staged_again_by_hand_changes_no_total(world: World) -> None:
    consumer = world.consumer()
    world.take(1, 2)
    drain(world.streamer())
    world.connection.execute("INSERT INTO staged_log_records VALUES (1, 'create', 'ride', '{}')")
    assert mend(world.connect())[0] == [1]
    at = catch_up(consumer)
    assert (at.ride_id, at.total) == world.truth == (2, 3)
