"""A recording tells what was committed, in order, across a crash and a restore of Postgres."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.embedded.servers import Redis
from lab.chaos.backup import Backup
from lab.chaos.observer import Told
from lab.chaos.trace.__main__ import main
from lab.chaos.trace.recorder import TABLES
from lab.chaos.trace.recording import Commit, Life, Limits, Recording, Step, read
from tests.support.clusters import restore
from tests.support.recorded import LONGEST_LOG, recorded_world, recording
from tests.support.world import World, drain, eventually, take, transaction


@pytest.fixture
def recorded(redis: Redis, prepared: Path, tmp_path: Path) -> Iterator[World]:
    with recorded_world(redis, prepared, tmp_path) as world:
        yield world


def taken(step: Step) -> list[int]:
    """The rides that a life begins with, or that a commit took."""
    if isinstance(step, Life):
        return [int(row["id"] or 0) for row in step.tables["rides"]]
    assert isinstance(step, Commit)
    rides = (change.row for change in step.changes if change.table == "rides")
    return [int(row["id"] or 0) for row in rides]


def test_transactions_are_whole_and_in_the_order_of_their_commits(recorded: World) -> None:
    recorded.take(1)
    with recording(recorded) as tape:
        with transaction(recorded) as slow:
            early = take(slow, 2)
            late = recorded.take(3, 4)
            slow.commit()
        drain(recorded.streamer())
    limits, life, *commits = (step for step in tape.steps if not isinstance(step, Told))
    entries = [step.record.id for step in tape.steps if isinstance(step, Told)]
    assert entries == [1, 2, 3, 4]
    assert limits == Limits(LONGEST_LOG)
    assert isinstance(life, Life)
    assert taken(life) == [1]
    assert {*life.tables} == {*TABLES}
    assert [taken(commit) for commit in commits][:2] == [late, early]
    begun, sent = (commit.changes for commit in commits[2:] if isinstance(commit, Commit))
    assert [(change.what, change.table) for change in begun] == [("I", "terms")]
    assert [change.row for change in sent if change.what == "D"] == [
        {"id": str(ride)} for ride in range(1, 5)
    ]
    assert [change.row["last_sent_id"] for change in sent if change.what == "U"] == ["4"]


def test_nothing_comes_twice_or_not_at_all_when_postgres_crashes(recorded: World) -> None:
    with recording(recorded) as tape:
        first = [recorded.take(n) for n in range(1, 6)]
        recorded.postgres.kill()
        recorded.postgres.start()
        then = [recorded.take(n) for n in range(6, 11)]
    _, life, *commits = tape.steps
    assert isinstance(life, Life)
    assert [taken(commit) for commit in commits] == first + then


@pytest.mark.parametrize("recovery_signal", [True, False], ids=["signal", "no signal"])
def test_a_restore_begins_another_life(recorded: World, recovery_signal: bool) -> None:
    with recording(recorded) as tape:
        kept = recorded.take(1)
        backup = Backup(recorded.postgres, "first")
        lost = recorded.take(2)
        restore(recorded, backup, recovery_signal=recovery_signal)
        eventually(lambda: tape.recorder.lives == 2, "another life")
        new = recorded.take(3)
    steps = [step for step in tape.steps if isinstance(step, Life | Commit)]
    second = [isinstance(step, Life) for step in steps].index(True, 1)
    first, then = [*map(taken, steps[:second])], [*map(taken, steps[second:])]
    assert first in ([[], kept], [[], kept, lost])  # it may have come too late for the recorder
    assert then == [kept, new]


def test_a_table_that_is_emptied_ends_the_recording(recorded: World) -> None:
    with recording(recorded) as tape:
        recorded.connection.execute("TRUNCATE staged_log_records")
    assert "nobody may empty a table" in tape.recorder.error


def test_a_recording_without_a_step_proves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Recording(file := tmp_path / "recording", LONGEST_LOG).close()
    monkeypatch.setattr(sys, "argv", ["trace", str(file)])
    assert main() == 2
    assert capsys.readouterr().out == f"{file} has no steps\n"


def test_a_recording_that_was_never_closed_is_not_whole(tmp_path: Path) -> None:
    tape = Recording(file := tmp_path / "recording", LONGEST_LOG)
    tape.close()
    assert [*read(file)] == [Limits(LONGEST_LOG)]
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(EOFError):
        [*read(file)]
