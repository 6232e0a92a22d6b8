"""The nightly job in a fleet of chaos: it repairs what drifts."""

import pytest
from tqdm import tqdm

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
