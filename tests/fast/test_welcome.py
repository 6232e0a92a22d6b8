"""The welcome, while the fleet hangs."""

import socket
import threading

import pytest

from embedded.welcome import Welcome
from rocket_rides.fleet import NAME
from rocket_rides.process import Stop
from rocket_rides.settings import Settings

PATIENCE = 30  # seconds; only a broken test waits that long


def test_a_fleet_that_hangs_is_neither_waited_for_in_the_supervising_thread_nor_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAME, "servers.1")
    for limit in ("TIMEOUT", "GIVE_UP_AFTER"):
        monkeypatch.setattr(f"embedded.welcome.{limit}", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as api:
        config = Settings.model_construct(api_port=api.getsockname()[1])
        before = set(threading.enumerate())
        Welcome(config).begin(Stop())
        [waiting] = set(threading.enumerate()) - before
        api.accept()
        waiting.join(PATIENCE)
    assert not waiting.is_alive()
