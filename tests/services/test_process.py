"""What the processes share: bad settings are refused, text is UTF-8, hung sessions are ended."""

import logging
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from consumers.rides import Ride
from consumers.totals.total import Total
from tests.support.disasters import flush
from tests.support.forks import Process
from tests.support.listing import TABLE, Listing, listed
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


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_consumer_that_takes_too_long_takes_fewer_from_then_on(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_lost: bool
) -> None:
    """Else the same batch would be tried for ever, whether it comes from the log or the view."""
    monkeypatch.setattr(running, "TIMEOUT", "500ms")
    world.connection.execute(TABLE)
    ids, stop, took = world.send(*range(1, 41)), Stop(), list[int]()
    if is_lost:
        flush(world)

    class Slow(Listing):
        def take(self, records: Sequence[Ride]) -> None:
            took.append(len(records))
            if took.count(40) == 3:  # it does not get on
                stop.ask()
            time.sleep(0.03 * len(records))
            super().take(records)
            if self.rides == len(ids):
                stop.ask()

    running.run("slow", Slow, [], world.config(), stop)
    assert listed(world, "slow") == ids
    assert took[:2] == [40, 20]
    assert max(took[2:]) < 20
    assert "it takes too long to take 40 records at once: next, it is 20" in caplog.text
