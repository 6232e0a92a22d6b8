"""The real code, broken on purpose and recorded: the specification refuses what it then does.

The scenarios are those of chaos' own checker. Unbroken, each is allowed from end to end.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from demo.embedded.servers import Postgres, Redis
from lab.chaos.trace.judge import Verdict, judge
from lab.chaos.trace.recording import Loss
from tests.support.clusters import fresh_world
from tests.support.recorded import recorded_postgres, recording
from tests.support.sabotage import (
    Patch,
    Scenario,
    a_batch_sent_again,
    a_lost_log,
    another_fleet,
    believe_in_every_term,
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

SABOTAGE: list[tuple[Scenario, Callable[[Patch], None], str]] = [
    (out_of_order, skip_the_barrier, "No record is staged behind the log's back"),
    (more_than_a_batch, delete_more_than_was_sent, "what is sent is deleted, up to last_sent"),
    (two_batches, move_the_checkpoint_alone, "what it read leads to"),
    (a_lost_log, heal_nothing, "what it read leads to"),
    (another_fleet, believe_in_every_term, "what it read leads to"),
    (a_batch_sent_again, count_again, "what it read leads to"),
]


@pytest.fixture(scope="module")
def server(prepared: Path) -> Iterator[Postgres]:
    with recorded_postgres(prepared) as postgres:
        yield postgres


@pytest.fixture
def recorded(server: Postgres, redis: Redis, tmp_path: Path) -> Iterator[World]:
    with fresh_world(server, redis, tmp_path) as world:
        yield world


def verdict(world: World, scenario: Scenario) -> Verdict:
    """Of the scenario's recording, with the loss of the log where there is one."""
    with recording(world) as tape:
        scenario(world)
    until = time.monotonic() if scenario is a_lost_log else 0
    steps = [Loss("redis-flush", 0, until), *tape.steps]
    return judge(lambda: iter(steps))


@pytest.mark.parametrize(("scenario", "sabotage", "expected"), SABOTAGE)
def test_what_broken_code_does_is_refused(
    recorded: World,
    monkeypatch: Patch,
    scenario: Scenario,
    sabotage: Callable[[Patch], None],
    expected: str,
) -> None:
    sabotage(monkeypatch)
    assert expected in verdict(recorded, scenario).refused


@pytest.mark.parametrize("scenario", [scenario for scenario, _, _ in SABOTAGE])
def test_the_same_without_sabotage_is_allowed(recorded: World, scenario: Scenario) -> None:
    allowed = verdict(recorded, scenario)
    assert allowed.refused == ""
    assert bool(allowed.met["heals"]) == (scenario is a_lost_log)
