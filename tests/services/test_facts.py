"""What is gathered is what the two servers hold, at one moment."""

import re
from decimal import Decimal

import pytest

from rocket_rides.health import SILENCE
from rocket_rides.locks import Lock
from rocket_rides.sessions import ROLLUP
from rocket_rides.settings import PROJECT
from tests.support import rollup
from tests.support.clusters import each_stream_server
from tests.support.engine import all_shown
from tests.support.looks import answered, at_work, look, looking, patient, reader, said, seen
from tests.support.world import World, catch_up, drain, eventually, transaction
from unified_log import sessions
from unified_log.locks import try_lock
from unified_log.words import number
from watch import asking_postgres
from watch.asking_postgres import FACTS
from watch.facts import Agreement, Counts, Lead

AGED = "UPDATE rides SET created_at = now() - make_interval(secs => %s) WHERE id = %s"


def test_rides_are_taken_staged_and_sent(world: World) -> None:
    sent, (older, newest) = world.send(1, 2, 3), world.take(4, 5)
    world.connection.execute(AGED, [60, older])
    rides = seen(world).rides
    assert (rides.newest, rides.last_sent, rides.staged) == (newest, sent[-1], 2)
    assert rides.taken == rides.sent + 2
    assert rides.oldest_staged_seconds is not None
    assert 60 <= rides.oldest_staged_seconds < 70
    assert rides.per_second == 0.4  # four in ten seconds


def test_who_leads_is_told_from_who_stands_by(world: World) -> None:
    assert seen(world).streamer == Lead(False, 0)
    leader = world.connect()
    try_lock(leader, Lock.LEADER)
    for name in (sessions.STREAMER, sessions.STREAMER, sessions.starting(sessions.STREAMER)):
        at_work(world, name)
    leader.execute(sessions.RENAME, [sessions.STREAMER], prepare=False)
    assert seen(world).streamer == Lead(True, 2)
    assert seen(world).rollup.lead == Lead(False, 0)
    leader.close()
    eventually(lambda: seen(world).streamer == Lead(False, 2))


def test_each_total_has_the_processes_of_its_own_name(world: World) -> None:
    at_work(world, ROLLUP)
    world.consumer("other")
    for name in ("consumer0", "x" * 64, "streamer"):
        world.consumer(name)
        at_work(world, sessions.starting(sessions.reader("total", name)))
        assert reader(seen(world), name).processes == 0
        at_work(world, sessions.reader("total", name))
        assert reader(seen(world), name).processes == 1
        assert reader(seen(world), "other").processes == 0


def test_a_process_that_is_silent_is_known_and_not_at_work(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = FACTS.replace(f"interval '{SILENCE} seconds'", "interval '0 seconds'")
    assert hasty != FACTS
    monkeypatch.setattr(asking_postgres, "FACTS", hasty)
    world.consumer("frozen")
    at_work(world, sessions.starting(sessions.reader("total", "frozen")))
    assert reader(seen(world), "frozen").silent_processes == 0
    at_work(world, sessions.reader("total", "frozen"))
    found = reader(seen(world), "frozen")
    assert (found.processes, found.silent_processes) == (0, 1)


def test_a_consumer_is_removed_for_good_as_the_docs_say(world: World) -> None:
    page = (PROJECT / "docs/production.md").read_text()
    [reader] = re.findall(r"consumers\.remove (.* latecomer)", page)
    world.consumer("latecomer")
    assert [each.name for each in seen(world).readers] == ["latecomer"]
    assert world.service("consumers.remove", *reader.split()).ends() == 0
    assert seen(world).readers == ()
    assert world.connection.execute("SELECT FROM consumer_states").fetchone() is None


def test_the_readers_are_those_of_the_api_with_the_same_lags(world: World) -> None:
    world.consumer("slow")
    fast = world.consumer("fast")
    world.connection.execute("INSERT INTO checkpoints (name) VALUES ('outside')")
    world.send(*[1] * 10)
    catch_up(fast)
    shown = all_shown(world)
    assert len(shown) == 4
    database = seen(world)
    assert {
        (each.kind, each.name, each.ride, each.records_behind, each.total)
        for each in database.readers
    } == {
        (each["kind"], each["name"], each["last_ride_id"] or world.start,
         each["records_behind"], each["total_distance"])
        for each in shown if each["kind"] != "group"
    }  # fmt: skip
    assert reader(database, "fast").seconds_behind == 0
    assert reader(database, "slow").seconds_behind
    ours = {each.name for each in database.readers if each.is_own}
    assert ours == {"slow", "fast"}


def test_what_a_reader_has_healed_is_told(world: World) -> None:
    world.send("1.001", "2.002", "3.003")
    world.log().trim_to(1, exactly=True)
    catch_up(world.consumer())
    healed = Counts(1, 2, Decimal("3.003"), 0, 0, 0, 0, 0, 0)
    assert reader(seen(world), "consumer0").counts == healed


def test_latency_is_from_the_posts_transaction_to_the_readers_commit(world: World) -> None:
    consumer = world.consumer()
    world.send(1, 2)
    catch_up(consumer)
    world.connection.execute(
        "UPDATE checkpoints SET counted_at = created_at + interval '9 ms'"
        " FROM rides WHERE rides.id = position"
    )
    assert reader(seen(world), "consumer0").latency_seconds == 0.009
    world.connection.execute("UPDATE rides SET created_at = '-infinity'")
    assert reader(seen(world), "consumer0").latency_seconds is None
    world.connection.execute(
        "UPDATE rides SET created_at = now() - interval '62 seconds';"
        " UPDATE checkpoints SET counted_at = now() - interval '61 seconds'",
        prepare=False,
    )
    assert reader(seen(world), "consumer0").latency_seconds is None  # it has counted nothing since


def test_totals_are_compared_at_the_greatest_ride_that_all_have(world: World) -> None:
    """Whatever rides are between them, with numbers that were drawn and not used among them."""
    slow, middle, fast = (world.consumer(name, batch_size=3) for name in "abc")
    world.take("0.001", "999999999.999")
    for _ in range(5):
        with transaction(world) as undone:
            undone.execute("INSERT INTO rides (distance) VALUES (1)")
        world.take("0.002", "7.5")
    drain(world.streamer())
    slow.run_once()
    middle.run_once()
    middle.run_once()
    catch_up(fast)
    assert len({slow.at, middle.at, fast.at}) == 3
    agreement = seen(world).agreement
    assert agreement == Agreement(slow.at.position, dict.fromkeys("abc", slow.total))
    assert agreement.agree
    world.connection.execute(
        "UPDATE consumer_states SET total_distance = total_distance + 0.001 WHERE name = 'b'"
    )
    agreement = seen(world).agreement
    assert agreement
    assert not agreement.agree
    assert agreement.totals == {
        "a": slow.total, "b": slow.total + Decimal("0.001"), "c": slow.total
    }  # fmt: skip


def test_a_total_too_far_behind_is_not_compared(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_postgres, "MOST", 10)
    late, slow, fast = (
        world.consumer(name, batch_size=n) for name, n in (("a", 1), ("b", 2), ("c", 9))
    )
    world.take(*[1] * 12)
    with transaction(world) as undone:
        undone.execute("INSERT INTO rides (distance) SELECT 1 FROM generate_series(1, 50)")
    drain(world.streamer())
    for consumer in (late, slow):
        consumer.run_once()
    catch_up(fast)
    second = world.start + 2
    assert seen(world).agreement == Agreement(second, {"b": Decimal(2), "c": Decimal(2)}, ("a",))
    world.connection.execute("DELETE FROM consumer_states WHERE name <> 'a'")
    assert seen(world).agreement == Agreement(second - 1, {"a": Decimal(1)})


def test_a_reconciliations_drift_is_unrepaired_until_the_reset_is_applied(world: World) -> None:
    consumer = world.consumer()
    [ride] = world.send(1)
    catch_up(consumer)
    world.connection.execute(
        "INSERT INTO reconciliations (position, total_distance, rides, duration_seconds,"
        " compared) VALUES (cell_start() + 1, 0.999, 1, 2, %s)",
        [
            '{"consumers": [{"name": "consumer0", "drift": 0.001},'
            ' {"name": "right", "drift": 0.000}]}'
        ],
    )
    world.connection.execute(
        "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (1, 'consumer0')"
    )
    [run] = seen(world).reconciliations
    assert (run.drift, run.unrepaired) == ({"consumer0": Decimal("0.001")}, ("consumer0",))
    assert (run.id, run.ride, run.rides, run.total) == (1, ride, 1, Decimal("0.999"))
    catch_up(consumer)
    database = seen(world)
    assert database.reconciliations[0].unrepaired == ()
    words = [event.words for event in database.happened]
    assert "consumer0 applied the reset of reconciliation 1: 1.000 m became 0.999 m" in words
    assert "reconciliation 1: 1 ride, 0.999 m" in words
    assert f"a streamer took the lead after position {number(world.start)}" in words


def test_malformed_entries_are_counted_kind_by_kind_and_the_newest_are_told(world: World) -> None:
    world.connection.execute(
        "INSERT INTO malformed_entries (consumer_kind, consumer_name, redis_id, fields, reason)"
        " SELECT kind, 'name', n || '-0', '{}', 'no data'"
        " FROM (VALUES ('total', 2), ('receipts', 3)) k(kind, most), generate_series(1, most) n"
    )
    database = seen(world)
    assert database.malformed_entries == {"total": 2, "receipts": 3}
    assert {each.words for each in database.happened if each.is_fault} == {
        "name met a malformed entry: no data",
        "the receipts' group met a malformed entry: no data",
    }


@each_stream_server
def test_the_log_is_described_by_redis(world: World) -> None:
    world.send(*[1] * 500)
    log = look(world).log
    assert log is not None
    assert log.length == 500
    assert 5_000 < log.bytes < 500_000
    assert log.last_entry_seconds is not None
    assert 0 <= log.last_entry_seconds < 60


def test_dirty_minutes_are_those_of_the_rollup_that_leads(world: World) -> None:
    assert seen(world).rollup.dirty_minutes == 0
    leading = rollup.lead(world)
    rollup.send_at(world, ("2026-03-28 20:00:10Z", 1), ("2026-03-28 20:01:10Z", 1))
    eventually(lambda: leading.reader.run_once(wait=0) and leading.dirty.count == 2)
    found = seen(world).rollup
    assert (found.dirty_minutes, found.complete_to) == (2, world.start)
    assert found.lead.leads
    rollup.hurry(leading)
    found = seen(world).rollup
    assert (found.dirty_minutes, found.complete_to) == (0, world.start + 2)


def test_dirty_minutes_are_known_at_once_when_another_rollup_leads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient(monkeypatch)
    with looking(world) as gatherer:
        for lead in range(2):
            leading = rollup.lead(world)
            rollup.send_at(world, (f"2026-03-28 20:0{lead}:10Z", 1))
            eventually(lambda: leading.reader.run_once(wait=0) and leading.dirty.count)  # noqa: B023
            found = said(answered(gatherer)).rollup
            assert found.dirty_minutes
            rollup.hurry(leading)


def test_a_rate_beyond_what_is_counted_is_that_of_the_newest_rides(world: World) -> None:
    world.take(*[1] * 1000)
    world.connection.execute("UPDATE rides SET created_at = now() - interval '2 seconds'")
    rides = seen(world).rides
    assert rides.oldest_staged_seconds is not None  # all are of one age
    assert rides.per_second == pytest.approx(500 / rides.oldest_staged_seconds)
