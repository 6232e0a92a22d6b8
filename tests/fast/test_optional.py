"""What a fleet goes on without: it says why it can't work, and does not end before the others."""

import signal
import socket
import subprocess
import sys
from functools import partial

import pytest

from demo import optional
from demo.optional import NAME
from lab.processes import clean_environment
from rocket_rides import service
from rocket_rides.settings import PROJECT

PATIENCE = 30  # seconds; only a broken test waits that long


def test_a_page_whose_port_somebody_has_taken_does_not_end_the_fleet() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with subprocess.Popen(
            [sys.executable, "-m", "demo.page"],
            cwd=PROJECT,
            env=clean_environment() | {NAME: "watch.1", "WATCH_PORT": str(port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as page:
            assert page.stdout
            assert page.stdout.readline() == (
                "WARNING the fleet goes on without the live page: can't listen on 127.0.0.1 port"
                f" {port}: Address already in use; WATCH_HOST and WATCH_PORT choose another"
                " address\n"
            )
            page.send_signal(signal.SIGTERM)
            assert page.wait(PATIENCE) == 0


class Asked:
    """A Stop that was asked to stop once somebody waits for it."""

    def wait(self, _seconds: float) -> bool:
        return True


def fail() -> int:
    raise OSError("no space left")


def test_a_part_that_fails_is_told_with_its_traceback_and_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(NAME, "simulator.1")
    monkeypatch.setattr(service, "stop_on_signals", Asked)
    assert optional.run("the simulator", fail) is None
    assert "Traceback" in caplog.text
    assert "the fleet goes on without the simulator: no space left" in caplog.text


def test_by_itself_it_ends_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    with pytest.raises(OSError, match="no space left"):
        optional.run("the simulator", fail)
    assert optional.run("the simulator", lambda: 1) == 1


def test_whoever_ends_when_told_to_or_for_bad_settings_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAME, "watch.1")
    for status in (None, 0, 2):
        with pytest.raises(SystemExit) as end:
            optional.run("the live page", partial(sys.exit, status))
        assert end.value.code == status
