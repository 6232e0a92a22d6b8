"""One night's attempts, and what is installed for them: how each ended is told."""

import os
import subprocess
import sys
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

import pytest

from analytics.nightly import attempts
from analytics.nightly.__main__ import Reconciler
from analytics.nightly.child import LINGER
from analytics.nightly.schedule import next_due
from analytics.prerequisites import PACKAGES
from demo import nightly
from demo.install import environment
from rocket_rides.settings import PROJECT, load
from unified_log.process import Stop

HEAVY = {"pyspark", "py4j", "pyarrow", "adbc_driver_postgresql", "redis"}


def in_an_hour() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO")
    return caplog


@pytest.mark.parametrize(
    ("run", "level", "words"),
    [
        ("exit 0", "INFO", "reconciled"),
        ("exit 1", "WARNING", "reconciled: not everything agrees, see above"),
        ("exit 2", "WARNING", "the reconciliation could not run"),
        ("exit 3", "ERROR", "the reconciliation ended with 3"),
        ("kill -9 $$", "ERROR", "the reconciliation was killed by SIGKILL"),
    ],
)
def test_how_a_run_ended_is_told(
    told: pytest.LogCaptureFixture, run: str, level: str, words: str
) -> None:
    attempts.run_once(["sh", "-c", run], Stop(), in_an_hour())
    assert [(each.levelname, each.getMessage()) for each in told.records] == [(level, words)]


def test_a_run_is_tried_again_until_what_it_needs_is_there_and_it_can_run(
    monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Each reason is told once; each attempt may install what is lacking."""
    none, times = "there is no Java", tmp_path / "times"
    lacks = iter([none, none, "", ""])
    installed: list[datetime] = []
    monkeypatch.setattr(attempts, "what_is_lacking", lambda: next(lacks))
    run = f"printf x >> {times}; [ $(cat {times}) = xx ] || exit 2"
    until = in_an_hour()
    attempts.run_with_retries(
        ["sh", "-c", run], until, Stop(), 0.01, lambda _, until: installed.append(until)
    )
    assert times.read_text() == "xx"
    assert installed == [until] * 4
    said = [(each.levelname, each.getMessage()) for each in told.records]
    assert [each for each in said if "trying again at" not in each[1]] == [
        ("WARNING", f"can't reconcile the rides: {none}"),
        ("WARNING", "the reconciliation could not run"),
        ("INFO", "reconciled"),
    ]


def test_what_cannot_even_be_started_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """Such as while our Python is being replaced: the process that waits for the night goes on."""
    run = tmp_path / "run"

    def install(*_: object) -> None:
        if "the reconciliation could not start" in told.text:
            run.symlink_to("/bin/true")
        raise OSError("no memory")

    monkeypatch.setattr(attempts, "what_is_lacking", lambda: "")
    attempts.run_with_retries([str(run)], in_an_hour(), Stop(), 0.01, install)
    missing = f"[Errno 2] No such file or directory: '{run}'"
    assert [each for each in told.messages if "trying again at" not in each] == [
        "nothing can be installed: no memory",
        f"the reconciliation could not start: {missing}",
        "nothing can be installed: no memory",
        "reconciled",
    ]


def test_packages_that_are_half_there_are_a_reason_and_no_end(tmp_path: Path) -> None:
    for name in PACKAGES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    code = "from analytics.nightly import attempts; print(attempts.what_is_lacking())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=PROJECT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    reason = "AttributeError: module 'pyspark' has no attribute '__version__'"
    assert run.stdout.startswith(reason), run.stderr


def test_a_run_has_ended_before_the_next_night_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or that night would be left out."""
    ends: list[datetime] = []
    monkeypatch.setattr(attempts, "run_with_retries", lambda *given: ends.append(given[1]))
    reconciler = Reconciler(load(), Stop())
    reconciler.reconcile()
    due = next_due(reconciler.now(), time.fromisoformat(load().reconcile_at))
    assert timedelta(seconds=2 * LINGER) < due - ends[0] < timedelta(minutes=5)


def test_the_process_that_waits_imports_nothing_that_only_a_run_needs() -> None:
    code = "import sys, analytics.nightly.__main__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert not HEAVY & set(run.stdout.split())
    assert "analytics.nightly.__main__" in run.stdout


def test_what_a_run_needs_is_installed_where_make_has_set_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path)
    assert not nightly.is_wanted()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/honcho").write_text(environment.HONCHO)
    assert not nightly.is_wanted()  # this is another environment than ours
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    installed = tmp_path / "installed"
    nightly.install(Stop(), in_an_hour(), ["touch", str(installed)])
    assert installed.exists()
    assert told.messages == ["installing what only a reconciliation needs (Spark: 400 MB)"]
