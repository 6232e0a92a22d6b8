"""Services as forks of one interpreter: how one ended is known, however late anyone looks."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.support.forks import Process
from tests.support.world import PATIENCE, eventually


def test_one_that_has_ended_before_anyone_looks_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its id and its exit status then arrive together."""
    makefile = socket.socket.makefile

    def late(line: socket.socket, *arguments: Any, **options: Any) -> Any:
        eventually(lambda: line.recv(64, socket.MSG_PEEK).count(b"\n") == 2, "both")
        return makefile(line, *arguments, **options)

    monkeypatch.setattr(socket.socket, "makefile", late)
    with (tmp_path / "said").open("w") as said:
        process = Process("rocket_rides.log", ["--help"], os.environ, said.fileno(), said.fileno())
    assert process.wait(PATIENCE) == 0
    assert process.poll() == 0
