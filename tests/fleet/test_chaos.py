"""Chaos itself: a short run of it, and its end."""

import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from lab.chaos.faults import FAULTS
from lab.chaos.runs import can_run
from rocket_rides.settings import PROJECT
from tests.support.world import PATIENCE, eventually

# What the nightly job and a clock do is shown elsewhere, but for one fault that only a run repairs.
ELSEWHERE = {"nightly", "warehouse-full", "wrong-minute", "lost-outcome", "clock-jump"}
LIMIT = 1200  # seconds; only a hanging run takes so long, on a machine however busy


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "lab.chaos", *arguments],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # As a shell starts what is to run in the background: without a Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )


def end_of(run: subprocess.Popen[str]) -> str:
    """What it said; one that hangs is interrupted, so that it leaves nothing behind."""
    try:
        said, _ = run.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=LIMIT)
    return said


def test_a_short_run_loses_nothing_and_a_finding_fails_it() -> None:
    """Nor does it do what the specification does not allow; and what drifts is repaired, but not
    what somebody has tampered with.

    The one finding is that the recovery took too long: none can be so quick.
    """
    faults = [kind for kind in FAULTS if kind not in ELSEWHERE]
    run = start("--seed", "2", "--seconds", "6", "--recovery", "1e-9", "--faults", *faults)
    said = end_of(run)
    rows = (line.split(" | ") for line in said.splitlines() if " | " in line)
    figures = {name.strip(): figure for name, figure in rows}
    assert figures.get("lost") == figures.get("double") == "0", said
    assert "moves last_sent" in figures["steps that the specification allowed"]
    if can_run():
        assert "wrong-total" in figures["faults"]  # found by a run at the end, and repaired
        assert figures["tampered with"] == "rides, state, policy, ledger"  # found, not repaired
    finding, again = said.splitlines()[-2:]
    assert run.returncode == 1
    assert finding.startswith("BROKEN: after the last fault it took")
    assert again.startswith("1 findings; python -m lab.chaos --seed 2"), said
    folder = Path(again.rpartition(" ")[2])
    assert (folder / "nemesis.log").exists()
    shutil.rmtree(folder)


def test_a_run_that_is_interrupted_leaves_nothing_behind() -> None:
    run = start("--seconds", "600", "--rate", "5", "--faults", "disk-full")
    chaos = psutil.Process(run.pid)
    folder = eventually(lambda: folder_of(chaos), "a fleet", LIMIT)
    started = chaos.children(recursive=True)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=LIMIT)
    assert run.returncode == 128 + signal.SIGINT
    assert psutil.wait_procs(started, timeout=PATIENCE)[1] == []  # init reaps the API's workers
    assert not folder.exists()


def folder_of(chaos: psutil.Process) -> Path | None:
    """The fleet's folder, as one of its services knows it."""
    for process in chaos.children():
        with suppress(psutil.Error, KeyError):
            folder = Path(process.environ()["DATA_DIR"]).parent
            if folder.name.startswith("chaos-"):  # not ours, before the process becomes a service
                return folder
    return None
