"""`make break` where there is nothing to break."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from demo.breaking.__main__ import main
from demo.breaking.running_fleet import SIMULATOR, RunningFleet, Service
from demo.breaking.ways import WAYS
from rocket_rides.errors import Unavailable
from rocket_rides.fleet import LOCK

GIVEN = {"DATABASE_URL": "postgresql://127.0.0.1:1/x", "REDIS_URL": "redis://127.0.0.1:1"}

Told = Callable[..., tuple[object, str]]


@pytest.fixture
def told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Told:
    """The exit status, and what is said, where no fleet runs."""
    for name in ("DATABASE_URL", "REDIS_URL", "STREAM_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))

    def run(*arguments: str, **settings: str) -> tuple[object, str]:
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["breaking", *arguments])
        status: object = 0
        try:
            main()
        except SystemExit as end:
            status = end.code
        if isinstance(status, str):  # Python prints it, and ends with status 1
            print(status, file=sys.stderr)
            status = 1
        said = capsys.readouterr()
        return status, said.out + said.err

    return run


@pytest.mark.parametrize("setting", GIVEN)
def test_servers_of_ones_own_are_not_broken(told: Told, setting: str) -> None:
    status, said = told("freeze", **{setting: GIVEN[setting]})
    assert (status, said.count("\n")) == (1, 1)
    assert "only a fleet on the embedded servers is broken on purpose" in said


def test_without_a_fleet_or_a_way_it_says_what_there_is(told: Told, tmp_path: Path) -> None:
    status, said = told("freeze")
    assert (status, said.count("\n")) == (1, 1)
    assert said.startswith(f"no fleet runs on {tmp_path}: `make fleet` starts one")
    status, said = told()
    assert status == 0
    assert all(f"make break ARGS={way} " in said for way in WAYS)
    status, said = told("nonsense")
    assert status == 2
    assert all(way in said for way in WAYS)


def test_a_process_with_the_number_of_a_fleet_that_has_ended_is_no_fleet(
    told: Told, tmp_path: Path
) -> None:
    """Although something of ours is a consumer."""
    (tmp_path / LOCK).write_text(f"{os.getpid()} 1")
    (tmp_path / "consumers.py").write_text("input()")
    command = [sys.executable, "-m", "consumers", "elsewhere"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE) as consumer:
        _, said = told("freeze")
        consumer.kill()
    assert said.startswith("no fleet runs on ")


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
