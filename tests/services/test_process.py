"""A process of ours that hangs is cut off by the server, and begins again."""

import logging

import pytest

from consumers import running
from consumers.checkpoint import Position
from consumers.totals.total import Total
from rocket_rides.database import is_alive
from rocket_rides.process import Stop
from rocket_rides.settings import Settings
from tests.support.world import World, eventually


def test_a_consumer_that_hangs_in_a_transaction_is_disconnected_and_begins_again(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By the server, after ten seconds; else whoever waits for the checkpoint waits for ever."""
    assert running.TIMEOUT == "10s"
    monkeypatch.setattr(running, "TIMEOUT", "500ms")
    caplog.set_level(logging.INFO)
    config = Settings(
        database_url=world.postgres_url, redis_url=world.redis.url, stream_name=world.stream
    )
    stop, begun = Stop(), 0

    class HangsOnce(Total):
        def load(self, at: Position) -> None:
            nonlocal begun
            begun += 1
            if begun == 1:
                eventually(lambda: not is_alive(self.connection), "an end of the session")
            super().load(at)
            stop.ask()

    running.run("consumer0", HangsOnce, [], config, stop)
    assert "terminating connection due to idle-in-transaction timeout" in caplog.text
    assert begun > 1
