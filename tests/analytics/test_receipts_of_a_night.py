"""The receipts are proved in each run, which asks for the missing ones if it may and can."""

import shutil
from typing import Any

import pytest

from analytics.proofs import receipts
from analytics.result import Proved, ReceiptsVerdict, Stretch, WrongRides
from analytics.warehouse import Warehouse
from tests.support.books import Books

OUTCOMES = """
    INSERT INTO receipts (ride_id, outcome, attempts, due_at, decided_at)
    SELECT id, 'delivered', 1, now(), now() FROM rides
"""
COMPLETE = "UPDATE receipts_state SET inbox_to = %s, complete_to = %s"
OF_A_WORKER = "SELECT complete_to FROM receipts_state FOR UPDATE NOWAIT"
SET_BACKS = "SELECT set_backs FROM receipts_state"


@pytest.fixture
def delivered(books: Books) -> Books:
    """Three rides with their receipts, which a run has found right; then one is lost."""
    connection = books.world.connection
    books.world.send(1, 2, 3)
    connection.execute(OUTCOMES)
    connection.execute(COMPLETE, [3, 3])
    result = books.run()
    assert result.receipts == ReceiptsVerdict(upto=3, rides=3)
    assert (result.agrees, result.requested) == (True, False)
    connection.execute("DELETE FROM receipts WHERE ride_id = 2")
    return books


def test_a_new_warehouse_has_all_of_them_looked_at_and_no_worker_waits_while_it_is_written(
    delivered: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a repair: an old ride may be a new one. Writing takes long on a slow disk."""
    worker, publish, looks = delivered.world.connect(), Warehouse.publish, list[object]()

    def beside(warehouse: Warehouse, *given: Any) -> None:
        looks.append(worker.execute(OF_A_WORKER).fetchone())  # raises if it is locked
        publish(warehouse, *given)

    monkeypatch.setattr(Warehouse, "publish", beside)
    assert delivered.run().receipts == ReceiptsVerdict(upto=3)
    shutil.rmtree(delivered.on_disk)
    result = delivered.run()
    assert result.receipts == ReceiptsVerdict(upto=3, rides=3, missing=WrongRides(1, (2,)))
    assert result.requested
    assert looks == [(3,), (3,)]
    assert delivered.world.value(SET_BACKS) == 1
    assert receipts.proved(delivered.world.connection) == Proved(3, (Stretch(0, 3),))


def test_what_is_missing_is_asked_for_while_rides_are_held(delivered: Books) -> None:
    """To deliver a receipt again harms nobody."""
    delivered.world.connection.execute("UPDATE rides SET distance = 7 WHERE id = 1")
    delivered.world.connection.execute(f"{OUTCOMES} ON CONFLICT DO NOTHING")
    delivered.world.send(4)
    delivered.world.connection.execute(COMPLETE, [4, 4])
    result = delivered.run()
    assert result.status == "held"
    assert result.receipts == ReceiptsVerdict(upto=4, rides=4, missing=WrongRides(1, (4,)))
    assert (result.requested, delivered.world.value(SET_BACKS)) == (True, 1)


def test_what_a_full_run_has_missed_while_rides_are_held_is_missed_until_it_is_there(
    delivered: Books,
) -> None:
    change = "UPDATE rides SET distance = %s WHERE id = 1"
    delivered.world.connection.execute(change, [7])
    for full in (True, False, False):
        result = delivered.run(full=full)
        assert (result.status, result.requested) == ("held", False)
        assert result.receipts == ReceiptsVerdict(upto=3, rides=3, missing=WrongRides(1, (2,)))
    delivered.world.connection.execute(change, [1])
    result = delivered.run()
    assert (result.status, result.requested) == ("wrong", True)
