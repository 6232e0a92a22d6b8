"""What `breaking` calls healed, and what it cuts, on real servers."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal

import psycopg
import pytest

from demo.breaking import healing
from demo.breaking.attempt import already_wrong
from demo.breaking.compared_totals import ComparedTotals
from demo.breaking.healing import Healing, NotHealed
from demo.breaking.receiver import REASON, REFUSED
from demo.breaking.running_fleet import RunningConsumer, RunningFleet
from demo.breaking.servers import END_SESSIONS
from tests.support.world import World, catch_up, drain, eventually

OUTCOME = """
    INSERT INTO receipts (ride_id, outcome, attempts, reason, due_at, decided_at, dead_at)
    VALUES (%(ride)s, %(outcome)s, 1, 'status 503: in a bad mood', now(),
            CASE WHEN %(outcome)s::text IS NOT NULL THEN now() END,
            CASE WHEN %(outcome)s = 'dead' THEN now() END)
"""


def a_fleet(*consumers: str, rollup: bool = True, receipts: bool = True) -> RunningFleet:
    running = [RunningConsumer(name, []) for name in consumers]
    return RunningFleet(running, frozenset(), rollup, receipts, [])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healing, "PATIENCE", 0.1)


def healed(world: World, fleet: RunningFleet, upto: int) -> list[str]:
    """What is said while it waits. Raises NotHealed."""
    said: list[str] = []
    Healing(world.connection, fleet, said.append).wait(upto)
    return said


def test_totals_are_compared_with_the_rides_wherever_each_consumer_stands(world: World) -> None:
    totals = ComparedTotals(world.connection, ["consumer0", "consumer1"])
    assert totals.now() == []
    streamer, first = world.streamer(), world.consumer()
    world.take(1, "2.001", 3)
    drain(streamer)
    catch_up(first)
    assert not totals.are_exact(3)  # consumer1 has none yet
    world.take("0.5")
    drain(streamer)
    catch_up(world.consumer("consumer1"))
    assert [(each.ride, each.exact) for each in totals.now()] == [
        (3, Decimal("6.001")),
        (4, Decimal("6.501")),
    ]
    assert totals.are_exact(3)
    assert not totals.are_exact(4)
    catch_up(first)
    assert totals.are_exact(4)
    # Below what the last look knew, as after a restore.
    world.connection.execute("UPDATE checkpoints SET last_ride_id = 2 WHERE name = 'consumer0'")
    assert [each.is_exact for each in totals.now()] == [False, True]
    assert totals.now()[0].exact == Decimal("3.001")
    assert "consumer0 at ride 2: total 6.501 m, which is +3.500 m off" in str(totals.now()[0])


def test_a_look_costs_as_much_as_the_rides_since_the_last_one(world: World) -> None:
    """In rows that are read, not seconds."""
    streamer, consumer = world.streamer(), world.consumer()
    world.take(*[1] * 2000)
    drain(streamer)
    catch_up(consumer)
    totals = ComparedTotals(world.connection, ["consumer0"])
    assert totals.are_exact(2000)
    world.take(1, 1)
    drain(streamer)
    catch_up(consumer)
    read = "SELECT pg_stat_get_xact_tuples_returned('rides'::regclass)"
    fetched = "SELECT pg_stat_get_xact_tuples_fetched('rides'::regclass)"
    with world.connection.transaction():
        before = world.value(read) + world.value(fetched)
        assert totals.are_exact(2002)
        assert world.value(read) + world.value(fetched) - before <= 4


def test_minutes_and_receipts_are_waited_for_where_somebody_makes_them(
    world: World, impatient: None
) -> None:
    world.take(1, 2)
    drain(world.streamer())
    catch_up(world.consumer())
    alone = healed(world, a_fleet("consumer0", rollup=False, receipts=False), 2)
    assert alone[0] == "No rollup runs, so minutes are not waited for."
    assert alone[1] == "Nobody delivers receipts, so they are not waited for."
    assert alone[-1].startswith("Healed: all is well up to ride 2")
    with pytest.raises(NotHealed, match="not all minutes are complete up to ride 2 after"):
        healed(world, a_fleet("consumer0", receipts=False), 2)
    world.connection.execute("UPDATE rollup_state SET complete_to = 2")
    assert "minutes" in " ".join(healed(world, a_fleet("consumer0", receipts=False), 2))


def test_a_receipt_has_an_outcome_or_is_waited_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "RECEIPTS_PATIENCE", 0.1)
    world.take(1, 2, 3)
    drain(world.streamer())
    catch_up(world.consumer())
    fleet = a_fleet("consumer0", rollup=False)
    for ride, outcome in ((1, "delivered"), (2, "dead"), (3, None)):
        with pytest.raises(NotHealed, match="not all receipts are delivered or dead letters"):
            healed(world, fleet, 3)
        world.connection.execute(OUTCOME, {"ride": ride, "outcome": outcome})
    assert [world.value(REFUSED, ride, REASON) for ride in (0, 2, 3)] == [1, 1, 0]
    assert world.value(REFUSED, 0, "status 503: not now") == 0
    assert healed(world, fleet, 2)[-1].startswith("Healed: ")
    with pytest.raises(NotHealed, match="not all receipts"):
        healed(world, fleet, 3)
    long_ago = timedelta(seconds=healing.LONG_OVERDUE + 5)
    world.connection.execute("UPDATE rides SET created_at = created_at - %s", [long_ago])
    assert "Receipts were late before, so they are not waited for." in healed(world, fleet, 3)


def test_all_sessions_of_this_database_end_but_the_one_that_asks(world: World) -> None:
    ours, other = world.connect(), world.connect()
    ended, spared = ours.execute(END_SESSIONS).fetchone() or ([], None)
    assert spared == 0
    assert other.info.backend_pid in ended
    assert ours.info.backend_pid not in ended
    with pytest.raises(psycopg.OperationalError, match="terminating connection"):
        other.execute("SELECT")
    elsewhere = psycopg.connect(world.postgres_url.replace(f"/{ours.info.dbname}", "/postgres"))
    with elsewhere:
        ours.execute(END_SESSIONS)
        elsewhere.execute("SELECT")
    elsewhere.close()


def test_sessions_of_other_roles_are_told_from_those_that_ended(world: World) -> None:
    ours, other = world.connect(), world.connect()
    ours.execute("CREATE ROLE breaker")
    try:
        ours.execute("SET ROLE breaker")
        [row] = ours.execute(END_SESSIONS)
        assert row == ([], 1)
        other.execute("SELECT")
    finally:
        ours.execute("RESET ROLE")
        ours.execute("DROP ROLE breaker")


def test_the_first_sum_of_all_rides_may_take_longer_than_any_other_look(world: World) -> None:
    """It reads all of them."""
    drain(world.streamer())
    catch_up(world.consumer())
    connection, busy = world.connect(statement_timeout="50ms"), world.connect()
    totals = ComparedTotals(connection, ["consumer0"])
    with ThreadPoolExecutor(1) as threads:
        with busy.transaction():
            busy.execute("LOCK rides")
            with pytest.raises(psycopg.errors.QueryCanceled):
                totals.now()
            wrong = threads.submit(already_wrong, connection, totals)
            eventually(lambda: world.value("SELECT count(*) FROM pg_locks WHERE NOT granted"))
            busy.execute("SELECT pg_sleep(0.2)")
        assert wrong.result() == ""
    assert connection.execute("SHOW statement_timeout").fetchone() == ("50ms",)
    eventually(lambda: world.value("SELECT 1") == 1)
