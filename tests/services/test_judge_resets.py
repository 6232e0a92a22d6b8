"""The specification judges what two totals count, and their resets.

Each test changes one step of the recording, and the judge must refuse that step.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from demo.embedded.servers import Redis
from lab.chaos.observer import Told
from lab.chaos.trace.recording import Commit, Step
from tests.support import resets
from tests.support.recorded import steps_of
from tests.support.tampering import again, changed, commits, judged, last, plus, refused_at, which
from tests.support.world import World, catch_up, drain


def play(world: World) -> None:
    one, other = world.consumer("one"), world.consumer("other")
    world.take(1, 2)
    drain(world.streamer())
    catch_up(one)
    resets.ask(world, 2, "one")
    catch_up(one)
    world.take(3)
    drain(world.streamer())
    catch_up(one)
    catch_up(other)
    resets.ask(world, 3, "other")
    catch_up(other)


@pytest.fixture(scope="module")
def honest(
    redis_of_kind: Callable[[str], Redis], prepared: Path, tmp_path_factory: pytest.TempPathFactory
) -> list[Step]:
    return steps_of(play, redis_of_kind("valkey"), prepared, tmp_path_factory.mktemp("x"))


def test_an_honest_recording_is_allowed(honest: list[Step]) -> None:
    verdict = judged(honest)
    assert verdict.refused == "", verdict
    assert verdict.met["resets"] == 2


def test_a_reset_to_another_total_is_refused(honest: list[Step]) -> None:
    at = last(honest, "resets", status="applied")
    for more in ("0.001", "-0.001"):
        tampered = changed(honest, at, "consumer_states", total_distance=plus(more))
        assert refused_at(judged(tampered), at)


@pytest.mark.parametrize("status", ["superseded", "pending"])
def test_a_total_that_moves_without_its_reset_is_refused(honest: list[Step], status: str) -> None:
    at = last(honest, "resets", status="applied")
    assert refused_at(judged(changed(honest, at, "resets", status=status)), at)


def test_a_checkpoint_of_another_consumer_is_refused(honest: list[Step]) -> None:
    """What one commits is given to the other: then, or where that one counts it again."""
    for name, stranger in (("one", "other"), ("other", "one")):
        at = last(honest, "consumer_states", name=name)
        tampered = changed(honest, at, "checkpoints", name=stranger)
        assert refused_at(judged(tampered), at)
        both = changed(tampered, at, "consumer_states", name=stranger)
        assert judged(both).refused


def test_what_is_counted_twice_is_refused(honest: list[Step]) -> None:
    """But a reset, which makes right what is right."""
    for at in {*which(honest, "consumer_states")} - {*which(honest, "resets")}:
        assert refused_at(judged(again(honest, at)), at + 1)


def test_a_record_that_is_deleted_for_another_is_refused(honest: list[Step]) -> None:
    at = which(honest, "streamer_state")[-1]
    step = commits(honest)[at]
    assert isinstance(step, Commit)
    kept = [change for change in step.changes if change.what != "D"]
    tampered = replace(step, changes=kept)
    assert refused_at(judged([tampered if known is step else known for known in honest]), at)


def test_an_entry_of_another_distance_is_refused(honest: list[Step]) -> None:
    """The log says of the last ride what the database does not."""
    told = [step for step in honest if isinstance(step, Told)][-1]
    other = replace(told, record=replace(told.record, distance=told.record.distance + 1))
    tampered = [other if step is told else step for step in honest]
    assert refused_at(judged(tampered), which(honest, "streamer_state")[-1])
