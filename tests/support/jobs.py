"""The nightly job: in a process of its own, or in the test's."""

from collections.abc import Callable
from typing import NamedTuple

SPARK_PATIENCE = 300  # seconds: on a busy machine Spark alone takes a minute to start


class Run(NamedTuple):
    """How a run in the test's own process ended."""

    status: object
    said: str
    wrong: str  # what it said on standard error


Reconcile = Callable[..., Run]  # of a world, the options, and settings
