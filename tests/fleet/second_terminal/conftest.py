"""One fleet for all tests of this folder: they run beside it, and leave it as it was."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.honcho import Fleet, a_fleet
from tests.support.world import eventually


@pytest.fixture(scope="package")
def fleet(prepared: Path) -> Iterator[Fleet]:
    """With all of the Procfile."""
    with a_fleet(prepared) as fleet:
        fleet.start()
        eventually(fleet.is_welcomed, "the welcome")
        yield fleet
