"""A job that trusts Postgres alone is reported by chaos' judge of the trace: it is made so here."""

from typing import TYPE_CHECKING, Any

import pytest

from analytics.look import Look
from analytics.votes import Right
from tests.support.books import Books
from tests.support.recorded import Recorded, two_batches
from tests.support.world import catch_up

if TYPE_CHECKING:
    from pyspark import SparkContext

# As chaos tampers with them.
ALTER_RIDES = """
    WITH noted AS (INSERT INTO chaos.tamperings VALUES ('rides', 0))
    UPDATE rides SET distance = distance + 1
"""


def trust_postgres_alone(looks: list[Look], *_: Any) -> dict[int, Right]:
    return {look.after: Right.POSTGRES for look in looks}


@pytest.mark.parametrize("trusting", [False, True])
def test_a_run_that_trusts_postgres_alone_is_reported_and_one_with_two_witnesses_is_not(
    recorded: Recorded, spark: "SparkContext", monkeypatch: pytest.MonkeyPatch, trusting: bool
) -> None:
    """Somebody alters rides that a total has counted, and the warehouse has."""

    def altered_by_hand(recorded: Recorded) -> None:
        books = Books(recorded.world, spark)
        two_batches(recorded)
        books.run()
        recorded.world.connection.execute(ALTER_RIDES)
        books.run()
        catch_up(recorded.consumer)

    if trusting:
        monkeypatch.setattr("analytics.votes.decide", trust_postgres_alone)
    refused = recorded.judged(altered_by_hand).refused
    assert ("a reset makes it right" in refused) if trusting else (refused == "")
