"""A fast test has no server."""

import pytest


@pytest.fixture(scope="session")
def folder() -> None:
    """What every server begins with."""
    pytest.fail("tests in tests/fast run without servers")
