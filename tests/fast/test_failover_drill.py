"""The drill of fail-overs says what it lacks, and its verdict can fail."""

import subprocess
import sys

import pytest

from lab.failover.__main__ import judged
from lab.failover.drill import LIMIT, NEVER, Seen
from rocket_rides.settings import PROJECT


def test_without_its_programs_the_drill_says_in_one_sentence_what_it_needs() -> None:
    command = [sys.executable, "-m", "lab.failover"]
    ended = subprocess.run(command, cwd=PROJECT, env={"PATH": ""}, capture_output=True, text=True)
    [said] = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert said.startswith(
        ("the drill needs Debian's programs: apt install ", "the drill needs root")
    )


GOOD = Seen("Redis: frozen", "4.2 s", 0.2, LIMIT - 1)


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (GOOD._replace(elected=NEVER), "nobody was elected"),
        (GOOD._replace(refused=LIMIT + 1), "no POST was taken for 61 s"),
        (GOOD._replace(stood=LIMIT + 1), "totals stood for 61 s"),
    ],
)
def test_a_fleet_that_does_not_go_on_by_itself_is_found(bad: Seen, found: str) -> None:
    assert [*judged([GOOD])] == []
    [told] = judged([GOOD, bad])
    assert told.startswith("Redis: frozen: ")
    assert found in told
