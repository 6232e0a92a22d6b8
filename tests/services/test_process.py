"""What the processes share: bad settings are refused, text is UTF-8, hung sessions are ended."""

import logging
from pathlib import Path

import pytest

from consumers.totals.total import Total
from tests.support.forks import Process
from tests.support.world import PATIENCE, World, eventually
from unified_log import database
from unified_log.process import Stop
from unified_log.readers import running
from unified_log.readers.checkpoint import Place

PROCESSES = [
    "analytics.nightly",
    "api",
    "streamer",
    "consumers.totals",
    "migrations",
    "demo.embedded",
]


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_refuses_a_bad_setting_without_a_traceback(
    module: str, tmp_path: Path
) -> None:
    arguments = ["consumer0"] if module == "consumers.totals" else []
    said = tmp_path / "said"
    ended = Process(module, arguments, {"API_PORT": "many", "PATH": "/usr/bin"}, said)
    assert ended.wait(PATIENCE) == 2
    assert said.read_text() == (
        "API_PORT=many is refused: Input should be a valid integer, unable to parse string as an"
        " integer\n"
    )


def test_every_session_is_in_utf_8(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the database or its clients' environment prefer."""
    monkeypatch.setenv("PGCLIENTENCODING", "SQL_ASCII")
    for url in (world.postgres_url, f"{world.postgres_url}&client_encoding=LATIN1"):
        with database.connect(url, "test") as connection:
            assert connection.execute("SHOW client_encoding").fetchone() == ("UTF8",)


def test_a_consumer_that_hangs_in_a_transaction_is_disconnected_and_begins_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the server, after ten seconds; else whoever waits for the checkpoint waits for ever."""
    assert running.TIMEOUT == "10s"
    monkeypatch.setattr(running, "TIMEOUT", "500ms")
    caplog.set_level(logging.INFO)
    config, stop, begun = world.config(), Stop(), 0

    class HangsOnce(Total):
        def load(self, at: Place) -> None:
            nonlocal begun
            begun += 1
            if begun == 1:
                eventually(lambda: not database.is_alive(self.connection), "the session's end")
            super().load(at)
            stop.ask()

    running.run("consumer0", HangsOnce, [], config, stop)
    assert "terminating connection due to idle-in-transaction timeout" in caplog.text
    assert begun > 1
