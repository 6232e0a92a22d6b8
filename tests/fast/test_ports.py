"""`python -m embedded.ports`: a fleet whose ports are taken is refused before anything starts."""

import socket
import sys
from pathlib import Path

import pytest

from embedded import ports

UNSET = ("DATABASE_URL", "API_HOST", "WATCH_HOST", "WATCH_PORT", "RECEIPT_URL")


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> int:
    """The fleet's first port; the two after it are free as well."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free: int = probe.getsockname()[1]
    monkeypatch.setattr(sys, "argv", ["ports"])
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("API_PORT", str(free))
    for name in UNSET:
        monkeypatch.delenv(name, raising=False)
    return free


@pytest.mark.parametrize("which", range(3), ids=["the API's", "the page's", "the receipts'"])
def test_a_port_that_is_taken_is_one_sentence(first: int, which: int) -> None:
    ports.main()
    with socket.create_server(("127.0.0.1", first + which)), pytest.raises(SystemExit) as end:
        ports.main()
    assert str(end.value) == (
        f"can't listen on 127.0.0.1 port {first + which}: Address already in use;"
        " nothing was started; API_PORT chooses another"
    )
    ports.main()


def test_the_setting_is_named_that_chose_the_port(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setenv("WATCH_PORT", str(other.getsockname()[1]))
        with pytest.raises(SystemExit, match="WATCH_PORT chooses another"):
            ports.main()


def test_receipts_that_go_elsewhere_need_no_port(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECEIPT_URL", "http://shop.example/receipts")
    with socket.create_server(("127.0.0.1", first + 2)):
        ports.main()
