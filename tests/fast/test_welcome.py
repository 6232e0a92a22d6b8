"""The welcome, while the fleet hangs."""

import logging
import socket
import threading
from itertools import repeat

import pytest

from demo.embedded import welcome
from demo.optional import NAME
from rocket_rides.settings import Settings
from unified_log.process import Stop

PATIENCE = 30  # seconds; only a broken test waits that long


def test_a_fleet_that_hangs_is_not_waited_for_in_the_supervising_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NAME, "servers.1")
    monkeypatch.setattr("demo.embedded.welcome.TIMEOUT", 0.5)
    stop = Stop()
    with socket.create_server(("127.0.0.1", 0)) as api:
        config = Settings.model_construct(api_port=api.getsockname()[1])
        before = set(threading.enumerate())
        welcome.start(config, stop)
        [waiting] = set(threading.enumerate()) - before
        api.accept()
        stop.ask()
        waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_a_fleet_is_welcomed_once_when_its_page_is_there_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = Settings.model_construct(api_port=1, watch_port=2)
    there = {config.api_address}

    def answers(address: str, _path: str) -> bool:
        answered = address in there
        there.add(config.page_address)  # a moment later than the API
        return answered

    monkeypatch.setattr(welcome, "answers", answers)
    caplog.set_level(logging.INFO)
    welcome.wait(config, Stop())
    assert caplog.text.count("The fleet is up.") == 1
    assert caplog.text.count(f"See it live: http://{config.page_address}/\n") == 1


def test_a_fleet_whose_page_can_not_work_is_welcomed_all_the_same_and_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = Settings.model_construct(api_port=1, watch_port=2)
    monkeypatch.setattr(welcome, "answers", lambda address, _: address == config.api_address)
    monkeypatch.setattr(welcome, "delays", lambda: repeat(0.0, welcome.LOOKS))
    caplog.set_level(logging.INFO)
    welcome.wait(config, Stop())
    assert caplog.text.count("The fleet is up.") == 1
    assert f"See it live: http://{config.page_address}/  (it does not answer)\n" in caplog.text
