"""`python -m demo.embedded.ports`: a fleet whose ports are taken is refused at once."""

import socket
import sys
from pathlib import Path

import pytest

from demo.embedded import ports
from lab.ports import free_ports
from rocket_rides.settings import PORTS

UNSET = ("DATABASE_URL", "API_HOST", "WATCH_HOST", "WATCH_PORT", "RECEIPT_URL")


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> int:
    """The first of a fleet's ports, which are free."""
    free = free_ports(PORTS)
    monkeypatch.setattr(sys, "argv", ["ports"])
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("API_PORT", str(free))
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    return free


@pytest.mark.parametrize(
    ("which", "process", "setting"),
    [
        (0, "the API", "API_PORT"),
        (1, "the live page", "WATCH_PORT"),
        (2, "the simulator", "API_PORT"),
    ],
)
def test_a_port_that_is_taken_is_one_sentence(
    first: int, which: int, process: str, setting: str
) -> None:
    with socket.create_server(("127.0.0.1", first + which)), pytest.raises(SystemExit) as end:
        ports.main()
    assert str(end.value) == (
        f"{process} can't listen on 127.0.0.1 port {first + which}: Address already in use;"
        f" nothing was started; {setting} chooses another port"
    )


def test_no_two_processes_of_a_fleet_are_given_one_port(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCH_PORT", str(first))
    with pytest.raises(SystemExit, match="the live page can't listen"):
        ports.main()


def test_a_folder_that_can_not_be_one_is_one_sentence(
    first: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "file"))
    with pytest.raises(SystemExit, match=f"the folder {tmp_path}/file can't be used: File exists"):
        ports.main()


def test_receipts_that_go_elsewhere_need_no_port(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECEIPT_URL", "http://shop.example/receipts")
    with socket.create_server(("127.0.0.1", first + 2)):
        ports.main()
