"""`make break` where there is nothing to break."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from demo.breaking.__main__ import main
from demo.breaking.attempt import run
from demo.breaking.running_fleet import SIMULATOR, RunningFleet, Service, running_fleet
from demo.breaking.ways import WAYS
from rocket_rides.fleet import LOCK
from rocket_rides.settings import Settings
from unified_log.errors import Unavailable

GIVEN = [{"database_url": "postgresql://127.0.0.1:1/x"}, {"redis_url": "redis://127.0.0.1:1"}]


@pytest.mark.parametrize("given", GIVEN)
def test_servers_of_ones_own_are_not_broken(given: dict[str, str]) -> None:
    with pytest.raises(Unavailable, match="only a fleet on the embedded servers is broken"):
        run("freeze", Settings().model_copy(update=given), lambda *_: None)


def test_without_a_way_it_says_which_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["breaking"])
    main()
    said = capsys.readouterr().out
    assert all(f"make break ARGS={way} " in said for way in WAYS)


def test_a_process_with_the_number_of_a_fleet_that_has_ended_is_no_fleet(tmp_path: Path) -> None:
    """Although something of ours is a consumer."""
    (tmp_path / LOCK).write_text(f"{os.getpid()} 1")
    (tmp_path / "consumers").mkdir()
    (tmp_path / "consumers/totals.py").write_text("input()")
    command = [sys.executable, "-m", "consumers.totals", "elsewhere"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE) as consumer:
        with pytest.raises(Unavailable, match="no fleet runs on "):
            running_fleet(Settings.model_construct(data_dir=tmp_path))
        consumer.kill()


LISTEN = "import socket; server = socket.create_server(('127.0.0.1', 0)); print(); input()"


def test_a_receiver_fails_only_where_the_simulator_receives() -> None:
    """A simulator that does not know the signal would end, and the fleet with it."""
    for code, receives in (("print(); input()", False), (LISTEN, True)):
        with subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout
            process.stdout.readline()
            simulator = psutil.Process(process.pid)
            fleet = RunningFleet([Service(SIMULATOR, "", simulator)])
            if receives:
                assert fleet.receiver() == simulator
            else:
                with pytest.raises(Unavailable, match="receives none"):
                    fleet.receiver()
            process.kill()
