"""The nightly job in a fleet of chaos: it repairs what drifts, and a job that lies is found out."""

import sys
from dataclasses import replace

import pytest
from tqdm import tqdm

from lab.chaos import play
from lab.chaos.fleet import Fleet
from lab.chaos.nights import JOB, can_run
from lab.chaos.options import Options
from lab.chaos.outcome import Outcome, judged
from lab.chaos.play import Play

pytestmark = [
    pytest.mark.skipif(not can_run(), reason="needs Spark and Java"),
    pytest.mark.usefixtures("java"),
]

KINDS = ("nightly", "wrong-total", "lost-outcome")
OPTIONS = Options(seed=1, seconds=24, rate=10, faults=KINDS, every=4, recovery=60)
SHORT = replace(OPTIONS, seconds=8, rest=60)  # the last runs tell
LIE = "from analytics import emit, reconcile, result; {}; reconcile.main()"
AGREES_ALWAYS = "result.Compared.wrong = False; result.Compared.drift = 0"
ASKS_FOR_NO_RESET = "emit.ASK_FOR_RESETS = emit.ASK_FOR_RESETS.replace('WHERE', 'WHERE false AND')"


def played(options: Options, *job: str) -> Outcome:
    """The drifts are made whatever the machine does, and the last runs come across them."""
    fleet = Fleet()
    try:
        fleet.start()
        play = Play(fleet, options, job)
        play.run(tqdm(disable=True))
        return judged(play)
    finally:
        fleet.stop(keep=False)


def test_what_drifts_is_found_and_repaired() -> None:
    outcome = played(OPTIONS, *JOB)
    assert outcome.findings == []
    assert outcome.play.scene.drifts
    assert outcome.play.scene.drifts.made
    assert outcome.verdict.met["makes something wrong"]
    assert outcome.verdict.met["resets"]


@pytest.mark.parametrize(
    ("lie", "expected"),
    [(AGREES_ALWAYS, "was never repaired"), (ASKS_FOR_NO_RESET, "found something wrong")],
)
def test_a_lie_is_found_out(monkeypatch: pytest.MonkeyPatch, lie: str, expected: str) -> None:
    monkeypatch.setattr(play, "REPAIR_LIMIT", 2.0)
    found = "\n".join(played(SHORT, sys.executable, "-c", LIE.format(lie)).findings)
    assert expected in found
