"""Resets: wherever a consumer stands, a reconciliation puts it right, once and exactly."""

from decimal import Decimal
from typing import Any

import pytest

from api.consumers import CONSUMERS
from api.database import SESSION
from consumers.totals.reset import Applied, Reset
from tests.support.engine import all_shown, unhurried
from tests.support.resets import WRONG, WRONG_RIDES, ask, corrupt, exact, half_way, statuses
from tests.support.world import World, eventually
from unified_log.faults import InjectedCrash, crash_at
from unified_log.readers.round import Round, RoundStep


@pytest.mark.proves("repaired")
def test_a_reset_is_exact_wherever_the_consumer_stands(world: World) -> None:
    """Ten rides and more, of which the reconciliation speaks of five."""
    distances = [str(metres) for metres in range(1, 11)]
    world.send(*distances)
    assert exact(world)
    for stood, stands in ((0, 5), (3, 5), (8, 8), (10, 10), (99, 14)):
        corrupt(world, stood)
        consumer = world.consumer()
        number, total = ask(world, upto=5), sum(map(Decimal, distances[:stands]), Decimal(0))
        begin, end = world.start + stood, world.start + stands
        applied = Applied(number, begin, WRONG_RIDES, WRONG, end, stands, total)
        assert consumer.run_once().repair == Reset(applied)
        assert world.standing() == consumer.standing == (end, total)
        assert exact(world, consumer)
        distances.append("0.001")
        world.send(distances[-1])
        assert exact(world, consumer)
        assert exact(world)


def test_a_reset_leaves_other_consumers_and_readers_of_other_kinds_alone(world: World) -> None:
    world.send(1, 2)
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('billing', 'consumer0')")
    other, consumer = world.consumer("other"), world.consumer()
    other.run_once()
    corrupt(world)
    ask(world)
    assert other.run_once() == Round()
    assert world.standing("other") == (world.start + 2, WRONG)
    assert exact(world, consumer)
    assert world.value("SELECT position FROM checkpoints WHERE kind = 'billing'") == world.start


@pytest.mark.parametrize("step", RoundStep)
def test_a_crash_at_any_step_applies_a_reset_once(world: World, step: RoundStep) -> None:
    consumer = half_way(world)
    ask(world, upto=2)
    with pytest.raises(InjectedCrash), crash_at(step):
        consumer.run_once()
    third = world.start + 3
    if step is RoundStep.AFTER_COMMIT:
        assert (world.standing(), statuses(world)) == ((third, Decimal(6)), ["applied"])
        assert world.consumer().run_once().repair is None
    else:
        assert (world.standing(), statuses(world)) == ((third, WRONG), ["pending"])
        assert world.consumer().run_once().repair
    assert statuses(world) == ["applied"]
    assert world.value("SELECT count(*) FROM resets WHERE from_total = %s", WRONG) == 1
    assert world.value("SELECT resets_applied FROM checkpoints") == 1
    assert exact(world)


def test_a_reset_past_what_was_sent_is_superseded_and_costs_no_ride(world: World) -> None:
    """The rides that it speaks of were taken before this database was restored."""
    consumer = half_way(world)
    ahead = ask(world, upto=8)
    assert consumer.run_once().repair == Reset(ahead=ahead)
    assert (world.standing(), statuses(world)) == ((world.start + 3, WRONG), ["superseded"])
    world.send(7, 8, 9)  # numbers 7 and 8 again
    assert consumer.run_once().repair is None
    ask(world)
    assert exact(world, consumer)


def test_an_idle_consumer_is_reset_and_says_so(world: World) -> None:
    world.send("0.001", "0.002")
    process = world.service("consumers.totals", "consumer0").says("stands at")
    eventually(lambda: world.standing() == world.truth)
    corrupt(world)
    with world.connection.transaction():  # in between, it would apply the older one
        older, ahead = ask(world), ask(world, upto=3)
    process.says(f"was not reset by reconciliation {ahead}, which is ahead")
    process.says(f"a newer reset supersedes that of reconciliation {older}")
    second = world.start + 2
    assert world.standing() == (second, WRONG)
    right = ask(world)
    process.says(
        f"WARNING consumer0 was reset by reconciliation {right}:"
        f" total 0.003 m in 2 rides at position {second},"
        f" was 777.777 m in 77 rides at position {second}"
    )
    assert world.standing() == world.truth


def test_the_newest_reset_shows_in_the_list_of_consumers(world: World) -> None:
    def shown() -> Any:
        resets = {
            each["kind"]: each["reset"] for each in all_shown(world) if each["name"] == "consumer0"
        }
        assert resets["longest"] is None  # though it has the name of a total
        return resets["total"]

    second = world.send("0.001", "0.002")[-1]
    consumer = world.consumer()
    consumer.run_once()
    world.connection.execute("INSERT INTO checkpoints (kind, name) VALUES ('longest', 'consumer0')")
    assert shown() is None
    ask(world)
    newest = ask(world)
    nothing = dict.fromkeys(
        ("changed_at", "from_position", "from_total", "to_position", "to_total")
    )
    assert shown() == {"reconciliation": newest, "status": "pending"} | nothing
    corrupt(world)
    consumer.run_once()
    reset = shown()
    taken = "SELECT count(*) FROM rides WHERE created_at < %s"
    assert world.value(taken, reset.pop("changed_at")) == 2
    assert reset == {
        "reconciliation": newest,
        "status": "applied",
        "from_position": second,
        "from_total": Decimal("777.777"),
        "to_position": second,
        "to_total": Decimal("0.003"),
    }


def test_the_list_of_consumers_finds_each_newest_reset_in_an_index(world: World) -> None:
    connection = world.connect(**unhurried(SESSION))  # as the API's are
    plan = connection.execute(f"EXPLAIN {CONSUMERS}").fetchall()
    assert "Index Scan Backward using resets_newest" in str(plan)
