"""Two witnesses decide: Postgres, the warehouse's files, and the totals. Postgres alone never wins.

So a total is reset only when another witness sides with Postgres. It counts its rides as well.
Rides that were changed in Postgres are in `test_rides_changed.py`; each vote is in
`tests/fast/test_votes.py`.
"""

from collections.abc import Callable

import pytest
from deltalake import DeltaTable

from analytics.steps import RunStep
from tests.support.attacks import (
    alter_in_file,
    by_hand,
    delta,
    in_postgres,
    in_warehouse,
    settled,
    standing,
)
from tests.support.books import MILLIMETRE, Books
from tests.support.completed_runs import last_run
from unified_log.errors import Unavailable
from unified_log.faults import listening

LONGER = "UPDATE rides SET distance = distance + 1 WHERE id = 100004"


SWAP = """
    UPDATE rides SET distance = other.distance FROM rides other
    WHERE (rides.id, other.id) IN ((100005, 100006), (100006, 100005))
"""


def swap_at_the_end(books: Books) -> Callable[[object], None]:
    """Somebody does that after the run has judged the block."""

    def meanwhile(step: object) -> None:
        if step is RunStep.BEFORE_PUBLISH:
            by_hand(books.world, SWAP)

    return meanwhile


def test_a_file_that_was_altered_is_read_again_from_postgres_in_the_same_run(
    books: Books,
) -> None:
    """The totals side with Postgres. The version before stays, to be looked at.

    Postgres must still say so by then. Where Postgres, the warehouse and the totals all differ,
    nothing is done.
    """
    settled(books)
    version, totals = delta(books).version(), standing(books).totals
    alter_in_file(books, 100_004, 1)
    altered = in_warehouse(books)
    with pytest.raises(Unavailable, match="were changed"), listening(swap_at_the_end(books)):
        books.run()
    by_hand(books.world, SWAP)
    assert in_warehouse(books) == altered
    result = books.run()
    assert result.status == "wrong"
    run = last_run(books.world)
    assert (run.kinds, run.held, set(run.rides)) == ({"warehouse_changed"}, set(), {100_004})
    assert in_warehouse(books) == in_postgres(books) != altered
    assert standing(books)[1:] == (totals, 0)
    assert books.run().status == "agreed"
    old = DeltaTable(str(books.rides_on_disk), version).to_pyarrow_table()
    assert old.num_rows == len(altered)
    by_hand(books.world, LONGER)
    alter_in_file(books, 100_004, 2)
    before = standing(books)
    assert books.run(full=True).status == "held"
    run = last_run(books.world)
    assert (run.held - {"total_held"}, set(run.rides)) == ({"rides_undecided"}, {100_004})
    assert standing(books) == before


def test_a_total_is_reset_below_a_held_block_and_not_above_it(books: Books) -> None:
    settled(books)
    books.claim("below", 10, drift=MILLIMETRE)
    books.tamper("consumer0", MILLIMETRE)
    by_hand(books.world, LONGER)
    before = standing(books).totals
    result = books.run()
    assert (result.status, result.resets) == ("held", ["below"])
    [mismatch] = result.mismatches
    assert (mismatch.after, mismatch.upto) == (100_000, 200_000)
    assert mismatch.postgres.distance - mismatch.warehouse.distance == 1
    drifts = {consumer.name: consumer.drift for consumer in result.consumers}
    assert drifts == {"below": MILLIMETRE, "consumer0": MILLIMETRE, "consumer1": 0}
    assert standing(books).totals == before
    by_hand(books.world, LONGER.replace("+", "-"))
    assert books.caught_up("below") == books.world.truth
    right = books.run()
    assert (right.status, right.resets) == ("wrong", ["consumer0"])
    assert books.caught_up("consumer0") == books.world.truth
