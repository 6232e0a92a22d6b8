"""Resets while others work: each applies once, and no ride is lost or counted twice."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import pytest

import consumers.totals.reset
from consumers.totals.reset import Applied, Reset
from tests.support.resets import (
    ASK,
    RECONCILE,
    WRONG,
    WRONG_RIDES,
    ask,
    exact,
    half_way,
    statuses,
)
from tests.support.world import Consumer, World, eventually, transaction
from unified_log.errors import Overtaken
from unified_log.readers.checkpoint import LOCK
from unified_log.readers.round import Round


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
    assert again.applied == Applied(
        first + 1, world.start + 3, 3, Decimal(6), world.start + 6, 6, Decimal(21)
    )
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
            eventually(lambda: world.waiting, "a wait for the lock")
        return waiting.result()


def test_a_reset_waits_for_a_batch_in_flight(world: World) -> None:
    one = half_way(world)
    two = world.consumer()
    done = while_it_is_open(world, one, two.run_once, ask_upto=5).repair
    last = world.start + 6
    rides, total = WRONG_RIDES + 3, WRONG + 4 + 5 + 6
    assert done == Reset(Applied(1, last, rides, total, last, 6, Decimal(21)))
    world.send(7)
    with pytest.raises(Overtaken):
        one.run_once()  # it stands where it did, and remembers the total of before
    two.run_once()
    assert exact(world)


def test_a_batch_from_before_a_reset_does_not_count_what_the_reset_did(world: World) -> None:
    one, two = half_way(world), world.consumer()
    before = one._ask()
    one._ask = lambda: before  # type: ignore[method-assign]
    ask(world, upto=5)
    with pytest.raises(Overtaken):
        while_it_is_open(world, two, one.run_once)
    assert world.standing() == (world.start + 5, Decimal(15))
    assert exact(world)


def test_a_gap_that_is_healed_beside_a_reset_waits_for_it_and_locks_nothing(world: World) -> None:
    """The reset would wait for the total, and the healing for the checkpoint: a deadlock."""
    consumer = world.consumer()
    world.send(1, 2)
    world.log().start_anew()
    world.send(3)
    with transaction(world) as resetting, ThreadPoolExecutor(1) as pool:
        resetting.execute(LOCK, {"kind": "total", "name": "consumer0"})
        healing = pool.submit(consumer.run_once)
        eventually(lambda: world.waiting == 1)
        resetting.execute("UPDATE consumer_states SET total_distance = total_distance")
        resetting.commit()
        assert healing.result().healed
    assert exact(world, consumer)
