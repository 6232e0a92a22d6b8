"""A bad setting, as a process tells of it."""

from pathlib import Path

import pytest

from tests.support.forks import Process
from tests.support.world import PATIENCE

PROCESSES = ["analytics.nightly", "api", "streamer", "consumers", "migrations", "demo.embedded"]


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_refuses_it_without_a_traceback(module: str, tmp_path: Path) -> None:
    arguments = ["consumer0"] if module == "consumers" else []
    said = tmp_path / "said"
    with said.open("w") as output:
        to = output.fileno()
        ended = Process(module, arguments, {"API_PORT": "many", "PATH": "/usr/bin"}, to, to)
    assert ended.wait(PATIENCE) == 2
    assert said.read_text() == (
        "API_PORT=many is refused: Input should be a valid integer, unable to parse string as an"
        " integer\n"
    )
