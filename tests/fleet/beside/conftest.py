"""One fleet, and one browser, for all tests of this folder: they leave the fleet as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.embedded.welcome import answers
from tests.support.browser import Browser, browser
from tests.support.honcho import Fleet, a_fleet
from tests.support.world import eventually


@pytest.fixture(scope="package")
def fleet(prepared: Path) -> Iterator[Fleet]:
    """All of the Procfile, with all of the page's buttons."""
    with a_fleet(prepared) as fleet:
        fleet.start()
        eventually(lambda: "The fleet is up" in fleet.output.read_text(), "the welcome")
        yield fleet


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def url(fleet: Fleet) -> str:
    """Of its live page, which may be the last part of the fleet to be up."""
    address = f"127.0.0.1:{fleet.port + 1}"
    eventually(lambda: answers(address, "/healthz"), "the live page")
    return f"http://{address}/"
