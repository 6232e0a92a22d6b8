"""The proof can fail: each guarantee broken on purpose, in the test's own process, and reported.

Every scenario is also played unbroken: then the checker has nothing to say.
"""

from collections.abc import Callable

import pytest

from tests.support.sabotage import (
    Patch,
    Scenario,
    a_batch_sent_again,
    a_lost_log,
    a_lost_tail,
    a_restored_database,
    another_fleet,
    believe_in_every_term,
    close_gaps_when_idle_alone,
    count_again,
    delete_more_than_was_sent,
    heal_nothing,
    more_than_a_batch,
    move_the_checkpoint_alone,
    out_of_order,
    skip_the_barrier,
    two_batches,
)
from tests.support.world import World

SABOTAGE: list[tuple[Scenario, Callable[[Patch], None], list[str]]] = [
    (
        out_of_order,
        skip_the_barrier,
        ["consumer0's total is 5", "prev of ride 2 is 0, not 1", "1 records are left staged: [1]"],
    ),
    (
        more_than_a_batch,
        delete_more_than_was_sent,
        ["consumer0's total is 9", "prev of ride 6 is 2, not 5"],
    ),
    (two_batches, move_the_checkpoint_alone, ["consumer0's total is 0.000 m, not 3.000 m"]),
    (a_lost_log, heal_nothing, ["consumer0's total is 4.000 m, not 10.000 m (-6.000 m)"]),
    (another_fleet, believe_in_every_term, ["total is 42.000 m, not 6.000 m (+36.000 m)"]),
    (a_restored_database, believe_in_every_term, ["consumer0's total is", "not 61.000 m"]),
    (a_lost_tail, close_gaps_when_idle_alone, ["total is 1.000 m, not 6.000 m (-5.000 m)"]),
    (a_batch_sent_again, count_again, ["consumer0's total is 6.000 m, not 3.000 m (+3.000 m)"]),
]


@pytest.mark.parametrize(("scenario", "sabotage", "expected"), SABOTAGE)
def test_sabotage_is_reported(
    world: World,
    monkeypatch: Patch,
    scenario: Scenario,
    sabotage: Callable[[Patch], None],
    expected: list[str],
) -> None:
    sabotage(monkeypatch)
    found = "\n".join(scenario(world))
    for sentence in expected:
        assert sentence in found


@pytest.mark.parametrize("scenario", [scenario for scenario, _, _ in SABOTAGE])
def test_the_same_without_sabotage_is_found_to_be_right(world: World, scenario: Scenario) -> None:
    assert scenario(world) == []
