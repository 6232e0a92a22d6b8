"""The specification judges what is derived from the rides: resets, minutes, outcomes.

The recording is of a world with two totals, a rollup and a worker of the receipts; each test
changes one step of it, and the judge must refuse that step.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from demo.embedded.servers import Redis
from lab.chaos.trace.recording import Appended, Commit, Step
from tests.support import resets
from tests.support.receipts import staff
from tests.support.receiver import ACCEPT, Receiver, refuse
from tests.support.recorded import recorded_world, recording
from tests.support.rollup import complete_to, hurry, lead, send
from tests.support.tampering import (
    again,
    changed,
    commits,
    judged,
    last,
    plus,
    refused_at,
    swapped,
    which,
)
from tests.support.world import World, catch_up


def play(world: World, receiver: Receiver) -> None:
    """Two totals that are reset; minutes that are computed; one receipt of three is dead."""
    one, other = world.consumer("one"), world.consumer("other")
    send(world, 1, 2)
    catch_up(one)
    leading = lead(world)
    hurry(leading)
    resets.ask(world, 2, "one")
    catch_up(one)
    send(world, 3)
    catch_up(one)
    catch_up(other)
    resets.ask(world, 3, "other")
    catch_up(other)
    hurry(leading)
    assert complete_to(world) == 3
    with staff(world, receiver) as workers:
        receiver.behaviour = lambda request: refuse(422) if request.ride_id == 3 else ACCEPT
        worker = workers.worker()
        worker.until(lambda: workers.complete_to == 3 and not workers.pending)


@pytest.fixture(scope="module")
def honest(
    redis_of_kind: Callable[[str], Redis], prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Step]]:
    with (
        recorded_world(redis_of_kind("valkey"), prepared, tmp_path_factory.mktemp("x")) as world,
        Receiver() as receiver,
    ):
        with recording(world) as tape:
            play(world, receiver)
        yield tape.steps


def test_an_honest_recording_is_allowed(honest: list[Step]) -> None:
    verdict = judged(honest)
    assert verdict.refused == "", verdict
    assert verdict.met["resets"] == 2
    assert verdict.met["delivers"] == 2
    assert verdict.met["gives up"] == 1
    assert {"computes a minute", "completes minutes", "completes receipts"} <= {*verdict.met}


def test_a_reset_that_is_applied_twice_is_refused(honest: list[Step]) -> None:
    at = last(honest, "resets", status="applied")
    verdict = judged(again(honest, at))
    assert refused_at(verdict, at + 1)
    assert "settled once" in verdict.refused


def test_a_reset_that_nobody_asked_for_is_refused(honest: list[Step]) -> None:
    at = last(honest, "resets", status="applied")
    assert refused_at(judged(changed(honest, at, "resets", id="77")), at)


def test_a_reset_to_another_total_is_refused(honest: list[Step]) -> None:
    at = last(honest, "resets", status="applied")
    more = plus("0.001")
    tampered = changed(honest, at, "consumer_states", total_distance=more)
    assert refused_at(judged(tampered), at)
    assert refused_at(judged(changed(tampered, at, "resets", to_total=more)), at)


@pytest.mark.parametrize("status", ["superseded", "pending"])
def test_a_total_that_moves_without_its_reset_is_refused(honest: list[Step], status: str) -> None:
    at = last(honest, "resets", status="applied")
    assert refused_at(judged(changed(honest, at, "resets", status=status)), at)


def test_a_checkpoint_of_another_consumer_is_refused(honest: list[Step]) -> None:
    """What one commits is given to the other."""
    for name, stranger in (("one", "other"), ("other", "one")):
        at = last(honest, "consumer_states", name=name)
        tampered = changed(honest, at, "checkpoints", name=stranger)
        assert refused_at(judged(tampered), at)
        both = changed(tampered, at, "consumer_states", name=stranger)
        assert refused_at(judged(both), at)


def test_a_checkpoint_that_moves_beside_anothers_is_refused(honest: list[Step]) -> None:
    """In the same commit."""
    for name, stranger in (("one", "other"), ("other", "one")):
        at = last(honest, "consumer_states", name=name)
        step = commits(honest)[at]
        assert isinstance(step, Commit)
        [moved] = [change for change in step.did.changes if change.table == "checkpoints"]
        beside = replace(moved, row=moved.row | {"id": "9", "name": stranger})
        tampered = replace(step, did=replace(step.did, changes=[*step.did.changes, beside]))
        assert refused_at(judged([tampered if known is step else known for known in honest]), at)


def test_what_is_counted_twice_is_refused(honest: list[Step]) -> None:
    for at in which(honest, "consumer_states"):
        assert refused_at(judged(again(honest, at)), at + 1)


@pytest.mark.parametrize(
    ("column", "value"),
    [("rides", plus("1")), ("rides", plus("-1")), ("distance", plus("0.001")), ("upto", "4")],
)
def test_a_minute_that_is_wrong_is_refused(
    honest: list[Step], column: str, value: Callable[[str], str] | str
) -> None:
    for what in "IU":
        for at in which(honest, "ride_minutes", what):
            assert refused_at(judged(changed(honest, at, "ride_minutes", **{column: value})), at)


def test_minutes_that_are_called_complete_too_soon_are_refused(honest: list[Step]) -> None:
    """A commit that computes them is left out."""
    gone = commits(honest)[which(honest, "ride_minutes", "I")[0]]
    at = which(honest, "rollup_state")
    verdict = judged([step for step in honest if step is not gone])
    assert verdict.refused
    assert verdict.steps in at


@pytest.mark.parametrize("outcome", ["delivered", "dead"])
def test_an_outcome_that_comes_twice_is_refused(honest: list[Step], outcome: str) -> None:
    at = last(honest, "receipts", outcome=outcome)
    assert refused_at(judged(again(honest, at)), at + 1)


def test_a_receipt_that_is_begun_twice_is_refused(honest: list[Step]) -> None:
    at = which(honest, "receipts", "I")[0]
    assert refused_at(judged(again(honest, at)), at + 1)


def test_an_outcome_before_its_receipt_is_refused(honest: list[Step]) -> None:
    """Two commits of the worker, in the other order."""
    at = which(honest, "receipts")[0]
    assert refused_at(judged(swapped(honest, at)), at - 1)


def test_receipts_that_are_called_complete_too_soon_are_refused(honest: list[Step]) -> None:
    at = last(honest, "receipts_state")
    for outcome in ("delivered", "dead"):
        gone = commits(honest)[last(honest, "receipts", outcome=outcome)]
        verdict = judged([step for step in honest if step is not gone])
        assert refused_at(verdict, at - 1)
        assert "has no outcome" in verdict.refused


def test_a_record_that_is_deleted_for_another_is_refused(honest: list[Step]) -> None:
    at = which(honest, "streamer_state")[-1]
    step = commits(honest)[at]
    assert isinstance(step, Commit)
    kept = [change for change in step.did.changes if change.what != "D"]
    tampered = replace(step, did=replace(step.did, changes=kept))
    assert refused_at(judged([tampered if known is step else known for known in honest]), at)


def test_an_entry_of_another_distance_is_refused(honest: list[Step]) -> None:
    """The log says of the last ride what the database does not."""
    told = [step for step in honest if isinstance(step, Appended)][-1]
    other = replace(told, record=replace(told.record, distance=told.record.distance + 1))
    tampered = [other if step is told else step for step in honest]
    assert refused_at(judged(tampered), which(honest, "streamer_state")[-1])
