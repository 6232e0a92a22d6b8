"""Commands for a second terminal, where no fleet runs or a server is away: one line says so."""

import os
from pathlib import Path

import pytest

from rocket_rides.fleet import no_fleet_on
from tests.support.forks import completed
from tests.support.world import THE_FLEETS

AWAY = {"DATABASE_URL": "postgresql://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1"}
COMMANDS = {
    "psql": ("demo.embedded.psql",),
    "log": ("unified_log.log",),
    "break": ("demo.breaking", "freeze"),
    "held-out": ("unified_log.held_out", "list"),
    "dead-letters": ("consumers.receipts.dead", "list"),
    "reconcile": ("analytics.reconcile",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_fleet_one_line_says_so(command: str, tmp_path: Path) -> None:
    said = refused_by(command, DATA_DIR=str(tmp_path), DATABASE_URL="", REDIS_URL="")
    assert said.endswith(f"{no_fleet_on(tmp_path)}\n")


def test_a_server_of_ones_own_that_is_away_is_one_line(tmp_path: Path) -> None:
    said = refused_by("psql", DATA_DIR=str(tmp_path), **AWAY)
    assert "refused" in said
    assert "make fleet" not in said


def refused_by(command: str, **settings: str) -> str:
    """The one line that it prints before it ends."""
    done = completed(*COMMANDS[command], environment=os.environ | THE_FLEETS | settings)
    assert done.returncode
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr
