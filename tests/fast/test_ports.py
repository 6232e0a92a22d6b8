"""What a fleet needs before it starts, its ports and its folder: refused at once, in a sentence."""

import socket
from pathlib import Path

import pytest

from demo.embedded.failures import NeverStarts
from demo.embedded.folder import lock
from demo.embedded.ports import require_free
from lab.ports import free_ports
from rocket_rides.settings import PORTS, Settings


@pytest.fixture
def config(tmp_path: Path) -> Settings:
    """With ports that are free."""
    return Settings.model_construct(data_dir=tmp_path, api_port=free_ports(PORTS))


@pytest.mark.parametrize(
    ("which", "process", "setting"),
    [
        (0, "the API", "API_PORT"),
        (1, "the live page", "WATCH_PORT"),
        (2, "the simulator", "API_PORT"),
    ],
)
def test_a_port_that_is_taken_is_one_sentence(
    config: Settings, which: int, process: str, setting: str
) -> None:
    port = config.api_port + which
    with socket.create_server(("127.0.0.1", port)), pytest.raises(NeverStarts) as reason:
        require_free(config)
    assert str(reason.value) == (
        f"{process} can't listen on 127.0.0.1 port {port}: Address already in use;"
        f" nothing was started; {setting} chooses another port"
    )


def test_no_two_processes_of_a_fleet_are_given_one_port(config: Settings) -> None:
    with pytest.raises(NeverStarts, match="the live page can't listen"):
        require_free(config.model_copy(update={"watch_port": config.api_port}))


def test_receipts_that_go_elsewhere_need_no_port(config: Settings) -> None:
    elsewhere = config.model_copy(update={"receipt_url": "http://shop.example/receipts"})
    with socket.create_server(("127.0.0.1", config.api_port + 2)):
        require_free(elsewhere)


def test_a_folder_that_can_not_be_one_is_one_sentence(config: Settings, tmp_path: Path) -> None:
    """Before anything starts, and to whoever starts without that question."""
    (tmp_path / "file").write_text("")
    told = f"the folder {tmp_path}/file can't be used: File exists"
    with pytest.raises(NeverStarts, match=told):
        lock(tmp_path / "file")
    with pytest.raises(NeverStarts, match=told):
        require_free(config.model_copy(update={"data_dir": tmp_path / "file"}))
