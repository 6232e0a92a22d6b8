"""Resets: wherever a consumer stands, a reconciliation puts it right, once and exactly."""

from datetime import datetime
from decimal import Decimal

import psycopg
import pytest

from api.consumers import CONSUMERS, LIMIT
from api.pool import SESSION
from consumers.belief import BOUNDS
from consumers.checkpoint import MOVE
from consumers.round import Round, Step
from consumers.totals.reset import Applied, Reset
from consumers.totals.total import ADD, RESET_IS_DUE
from rocket_rides.faults import InjectedCrash, crash_at
from tests.support.api import Api
from tests.support.resets import WRONG, ask, corrupt, exact, half_way, send, statuses
from tests.support.world import World, eventually


@pytest.mark.proves("repaired")
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
    [found] = done.records
    assert (done.skipped, found.id, found.prev, found.distance) == (2, 6, 5, Decimal(6))
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


def test_a_reset_leaves_readers_of_other_kinds_alone(world: World) -> None:
    send(world, 1, 2)
    consumer = world.consumer()
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('billing', 'consumer0')")
    ask(world)
    consumer.run_once()
    stands = "SELECT last_ride_id FROM checkpoints WHERE kind = %s AND name = 'consumer0'"
    assert [world.value(stands, kind) for kind in ("billing", "total")] == [0, 2]


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


def test_looking_for_a_reset_costs_one_statement_of_each_round(world: World) -> None:
    """And no round trip: see test_round_trips."""
    consumer = world.consumer()
    send(world, 1, 2)
    asked, execute = [], consumer._connection.execute

    def note(query: str, *arguments: object) -> psycopg.Cursor:
        asked.append(query)
        return execute(query, *arguments)  # type: ignore[call-overload,no-any-return]

    consumer._connection.execute = note  # type: ignore[method-assign,assignment]
    assert consumer.run_once().records
    assert asked == [BOUNDS, RESET_IS_DUE, MOVE, ADD]
    assert consumer.run_once() == Round()
    assert asked[4:] == [BOUNDS, RESET_IS_DUE]


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


def test_the_newest_reset_shows_in_the_list_of_consumers(world: World, api: Api) -> None:
    def shown() -> object:
        [consumer, _] = api.client.get("/consumers").json()["consumers"]
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
    connection = world.connect(**SESSION)  # as the API's are
    plan = connection.execute(f"EXPLAIN {CONSUMERS}", {"limit": LIMIT}).fetchall()
    assert "Index Scan Backward using resets_newest" in str(plan)
