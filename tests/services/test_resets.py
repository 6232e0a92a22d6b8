"""Resets: wherever a consumer stands, a reconciliation puts it right, once and exactly."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal

import psycopg
import pytest

import consumers.totals.reset
from api.views import CONSUMERS
from consumers.checkpoint import MOVE
from consumers.round import Round, Step
from consumers.totals.reset import Applied, Reset
from consumers.totals.total import ADD, Total
from rocket_rides.errors import Overtaken
from rocket_rides.faults import InjectedCrash, crash_at
from rocket_rides.log import Record
from tests.support.api import Api
from tests.support.disasters import Rides
from tests.support.world import Consumer, World, drain, eventually, transaction

WRONG = Decimal("777.777")

RECONCILE = """
    INSERT INTO reconciliations (last_ride_id, total_distance, rides, duration_seconds, compared)
    SELECT %s, coalesce(sum(distance), 0), count(*), 1.5, '{}' FROM rides WHERE id <= %s
    RETURNING id
"""
ASK = "INSERT INTO resets (reconciliation_id, consumer_name) VALUES (%s, %s)"
WAITING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def ask(world: World, upto: int | None = None, name: str = "consumer0") -> int:
    """Reconcile the rides up to an id, or up to last_sent, and ask for a reset: its number."""
    if upto is None:
        upto = world.value("SELECT last_sent_id FROM streamer_state")
    reconciliation = world.value(RECONCILE, upto, upto)
    world.connection.execute(ASK, [reconciliation, name])
    return reconciliation


def corrupt(world: World, ride_id: int | None = None) -> None:
    """Give all consumers a wrong total, and maybe a wrong place."""
    world.connection.execute("UPDATE consumer_states SET total_distance = %s", [WRONG])
    if ride_id is not None:
        world.connection.execute("UPDATE checkpoints SET last_ride_id = %s", [ride_id])


def statuses(world: World) -> list[str]:
    query = "SELECT status FROM resets ORDER BY reconciliation_id"
    return [row[0] for row in world.connection.execute(query)]


def send(world: World, *distances: str | float) -> None:
    world.take(*distances)
    drain(world.streamer())


def exact(world: World, consumer: Consumer | None = None) -> bool:
    """Whether the consumer, with nothing more to do, has the truth."""
    consumer = consumer or world.consumer()
    eventually(lambda: consumer.run_once() == Round(), "nothing more to do")
    return consumer.standing == world.standing() == world.truth


def half_way(world: World) -> Consumer:
    """A consumer with a wrong total that has read three entries of six."""
    send(world, *range(1, 7))
    world.consumer(batch_size=3).run_once()
    corrupt(world)
    return Consumer(
        world.connect(lock_timeout="10s"), world.log(), "consumer0", Total, batch_size=3
    )


@pytest.mark.parametrize(
    ("stood", "stands"), [(0, 5), (3, 5), (5, 5), (8, 8), (10, 10), (11, 10), (99, 10)]
)
def test_a_reset_is_exact_wherever_the_consumer_stands(
    world: World, stood: int, stands: int
) -> None:
    """Ten rides, of 1 m to 10 m, of which the reconciliation speaks of five."""
    send(world, *range(1, 11))
    assert exact(world)
    corrupt(world, stood)
    consumer = world.consumer()
    assert ask(world, upto=5) == 1
    total = Decimal(sum(range(1, stands + 1)))
    assert consumer.run_once().repair == Reset(Applied(1, stood, WRONG, stands, total))
    assert world.standing() == consumer.standing == (stands, total)
    assert exact(world, consumer)
    send(world, "0.001")
    assert exact(world, consumer)
    assert exact(world)


def test_a_consumer_that_has_never_counted_starts_from_the_reconciliation(world: World) -> None:
    send(world, 1, 2, 3)
    consumer = world.consumer()
    ask(world, upto=2)
    consumer.run_once()
    assert world.standing() == (2, Decimal(3))
    assert exact(world, consumer)


def test_a_reset_before_the_first_ride_is_a_total_of_nothing(world: World) -> None:
    consumer = world.consumer()
    ask(world)
    assert consumer.run_once().repair == Reset(Applied(1, 0, Decimal(0), 0, Decimal(0)))
    send(world, 1)
    assert exact(world, consumer)


def test_entries_up_to_the_reconciled_ride_are_skipped_as_sent_again(world: World) -> None:
    consumer = half_way(world)
    ask(world, upto=5)
    assert consumer.run_once().repair
    done = consumer.run_once()
    [found] = done.news
    assert isinstance(found, Record)
    assert (done.skipped, found[:3]) == (2, (6, 5, Decimal(6)))
    assert exact(world, consumer)


def test_a_consumer_brought_back_is_reset_before_it_reads_what_is_left(world: World) -> None:
    half_way(world)
    ask(world)
    send(world, *range(1, 101))
    world.log().trim_to(10, exactly=True)
    back = world.consumer()
    assert back.run_once().repair
    assert world.standing() == (6, Decimal(21))
    assert exact(world, back)


def test_a_reset_leaves_other_consumers_alone(world: World) -> None:
    send(world, 1, 2)
    other, consumer = world.consumer("other"), world.consumer()
    other.run_once()
    corrupt(world)
    ask(world)
    assert other.run_once() == Round()
    assert world.standing("other") == (2, WRONG)
    assert exact(world, consumer)


def test_a_reset_is_applied_once(world: World) -> None:
    consumer = half_way(world)
    ask(world, upto=2)
    assert consumer.run_once().repair
    corrupt(world)  # a second one would put this right
    assert all(world.consumer().run_once().repair is None for _ in range(2))
    assert statuses(world) == ["applied"]
    ask(world)
    assert exact(world)


@pytest.mark.parametrize("step", Step)
def test_a_crash_at_any_step_applies_a_reset_once(world: World, step: Step) -> None:
    consumer = half_way(world)
    ask(world, upto=2)
    with pytest.raises(InjectedCrash), crash_at(step):
        consumer.run_once()
    if step is Step.AFTER_COMMIT:
        assert (world.standing(), statuses(world)) == ((3, Decimal(6)), ["applied"])
        assert world.consumer().run_once().repair is None
    else:
        assert (world.standing(), statuses(world)) == ((3, WRONG), ["pending"])
        assert world.consumer().run_once().repair
    assert statuses(world) == ["applied"]
    assert world.value("SELECT count(*) FROM resets WHERE from_total = %s", WRONG) == 1
    assert exact(world)


def test_a_newer_reset_supersedes_an_older_one(world: World) -> None:
    consumer = half_way(world)
    older, newer = ask(world, upto=2), ask(world, upto=5)
    done = consumer.run_once().repair
    assert done == Reset(Applied(newer, 3, WRONG, 5, Decimal(15)), superseded=[older])
    assert statuses(world) == ["superseded", "applied"]
    assert exact(world, consumer)


def test_an_older_reset_that_commits_late_never_applies(world: World) -> None:
    consumer = half_way(world)
    with transaction(world) as late:
        late.execute(RECONCILE, [2, 2])
        late.execute("UPDATE reconciliations SET total_distance = 5000")
        late.execute(ASK, [1, "consumer0"])
        ask(world)
        assert consumer.run_once().repair  # and does not wait for the open transaction
        late.commit()
    assert statuses(world) == ["pending", "applied"]
    assert consumer.run_once().repair == Reset(superseded=[1])
    assert statuses(world) == ["superseded", "applied"]
    assert exact(world, consumer)


def test_a_reset_that_comes_while_another_is_applied_is_not_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = half_way(world)
    apply = consumers.totals.reset._apply

    def apply_and_ask(*arguments: object) -> Applied:
        done: Applied = apply(*arguments)  # type: ignore[arg-type]
        world.connection.execute("SET lock_timeout = '10s'")
        ask(world, upto=6)  # and does not wait for the consumer's lock
        return done

    first = ask(world, upto=2)
    monkeypatch.setattr(consumers.totals.reset, "_apply", apply_and_ask)
    consumer.run_once()
    monkeypatch.undo()
    assert statuses(world) == ["applied", "pending"]
    again = consumer.run_once().repair
    assert isinstance(again, Reset)
    assert again.applied == Applied(first + 1, 3, Decimal(6), 6, Decimal(21))
    assert exact(world, consumer)


def test_a_reset_past_what_was_sent_is_superseded_and_costs_no_ride(world: World) -> None:
    """The rides that it speaks of were taken before this database was restored."""
    consumer = half_way(world)
    ahead = ask(world, upto=8)
    assert consumer.run_once().repair == Reset(ahead=ahead)
    assert (world.standing(), statuses(world)) == ((3, WRONG), ["superseded"])
    send(world, 7, 8, 9)  # numbers 7 and 8 again
    assert consumer.run_once().repair is None
    ask(world)
    assert exact(world, consumer)


def while_it_is_open(
    world: World, transaction: Consumer, meanwhile: Callable[[], Round], ask_upto: int = 0
) -> Round:
    """Do a round but not its commit; commit when `meanwhile` waits for it; what came of that."""
    with ThreadPoolExecutor() as pool:
        with transaction._connection.transaction():
            transaction.run_once()
            if ask_upto:
                ask(world, ask_upto)
            waiting = pool.submit(meanwhile)
            eventually(lambda: world.value(WAITING), "a wait for the lock")
        return waiting.result()


def test_a_reset_waits_for_a_batch_in_flight(world: World) -> None:
    one = half_way(world)
    two = world.consumer()
    done = while_it_is_open(world, one, two.run_once, ask_upto=5).repair
    assert done == Reset(Applied(1, 6, WRONG + 4 + 5 + 6, 6, Decimal(21)))
    send(world, 7)
    one.run_once()  # from where it was: the reset changed no more than the total
    with pytest.raises(Overtaken):
        two.run_once()
    assert exact(world)


def test_a_batch_from_before_a_reset_does_not_count_what_the_reset_did(world: World) -> None:
    one, two = half_way(world), world.consumer()
    before = one._bounds()
    one._bounds = lambda: before  # type: ignore[method-assign]
    ask(world, upto=5)
    with pytest.raises(Overtaken):
        while_it_is_open(world, two, one.run_once)
    assert world.standing() == (5, Decimal(15))
    assert exact(world)


def test_a_batch_that_waits_for_a_reset_adds_to_what_the_reset_leaves(world: World) -> None:
    one, two = half_way(world), world.consumer()
    before = one._bounds()
    one._bounds = lambda: before  # type: ignore[method-assign]
    ask(world, upto=2)
    assert len(while_it_is_open(world, two, one.run_once).news) == 3
    assert one.standing == world.standing() == world.truth
    assert exact(world)


def test_two_processes_apply_a_reset_once_and_both_know_where_they_stand(world: World) -> None:
    one, two = half_way(world), world.consumer()
    ask(world, upto=5)
    assert while_it_is_open(world, two, one.run_once).repair == Reset()
    assert one.at == two.at
    assert world.value("SELECT count(*) FROM resets WHERE from_total = %s", WRONG) == 1
    assert exact(world, one)


def test_looking_for_a_reset_costs_no_statement_of_its_own(world: World) -> None:
    consumer = world.consumer()
    send(world, 1, 2)
    asked, execute = [], consumer._connection.execute

    def note(query: str, *arguments: object) -> psycopg.Cursor:
        asked.append(query)
        return execute(query, *arguments)  # type: ignore[call-overload,no-any-return]

    consumer._connection.execute = note  # type: ignore[method-assign,assignment]
    assert consumer.run_once().news
    bounds = consumer._bounds_statement
    assert asked == [bounds, MOVE, ADD]
    assert consumer.run_once() == Round()
    assert asked == [bounds, MOVE, ADD, bounds]


def test_an_idle_consumer_is_reset_within_its_idle_rounds_and_says_so(world: World) -> None:
    send(world, "0.001", "0.002")
    process = world.service("consumers", "consumer0").says("stands at")
    eventually(lambda: world.standing() == world.truth)
    corrupt(world)
    older, ahead = ask(world), ask(world, upto=3)
    process.says(f"was not reset by reconciliation {ahead}, which is ahead")
    process.says(f"a newer reset supersedes that of reconciliation {older}")
    assert world.standing() == (2, WRONG)
    right = ask(world)
    process.says(
        f"WARNING consumer0 was reset by reconciliation {right}:"
        " total 0.003 m at ride 2, was 777.777 m at ride 2"
    )
    assert world.standing() == world.truth
    assert world.value(
        "SELECT count(*) FROM resets JOIN reconciliations ON reconciliations.id = reconciliation_id"
        " WHERE status = 'applied' AND changed_at - created_at < '2 s'"
    )


@pytest.mark.parametrize("astray", [0, -40, 40, 1_000_000])
def test_resets_in_mid_flow_end_exact(world: World, astray: int) -> None:
    """The checkpoint is moved, too, by so many rides; crashes come as they may."""
    faults = {"CRASH_RATE": "0.2", "DOUBLE_SEND_RATE": "0.2"}
    for _ in range(2):  # one as well as the other of the same name
        world.service("consumers", "consumer0", **faults).says("stands at")
    world.service("streamer", **faults).says("leading")
    rides = Rides(world)
    try:
        for _ in range(3):
            rides.flow(100)
            place = "UPDATE checkpoints SET last_ride_id = greatest(0, last_ride_id + %s)"
            world.connection.execute(place, [astray])
            corrupt(world)
            ask(world)
            eventually(lambda: "pending" not in statuses(world), "no pending reset")
    finally:
        rides.stop()
    eventually(lambda: world.standing() == world.truth, "an exact total")
    assert set(statuses(world)) == {"applied"}


def test_the_newest_reset_shows_in_the_list_of_consumers(world: World, api: Api) -> None:
    def shown() -> object:
        [consumer] = api.client.get("/consumers").json()["consumers"]
        return consumer["reset"]

    send(world, "0.001", "0.002")
    consumer = world.consumer()
    consumer.run_once()
    assert shown() is None
    ask(world)
    newest = ask(world)
    nothing = dict.fromkeys(("changed_at", "from_ride_id", "from_total", "to_ride_id", "to_total"))
    assert shown() == {"reconciliation": newest, "status": "pending"} | nothing
    corrupt(world)
    consumer.run_once()
    reset = shown()
    assert isinstance(reset, dict)
    changed = datetime.fromisoformat(reset.pop("changed_at"))
    taken = datetime.fromisoformat(api.client.get("/rides/1").json()["ride"]["created_at"])
    assert changed > taken
    assert reset == {
        "reconciliation": newest,
        "status": "applied",
        "from_ride_id": 2,
        "from_total": 777.777,
        "to_ride_id": 2,
        "to_total": 0.003,
    }
    assert '"to_total":0.003' in api.client.get("/consumers").text


def test_the_list_of_consumers_finds_each_newest_reset_in_an_index(world: World) -> None:
    world.connection.execute("SET enable_seqscan = off")  # as the API does
    plan = world.connection.execute(f"EXPLAIN {CONSUMERS}").fetchall()
    assert "Index Scan Backward using resets_newest" in str(plan)
