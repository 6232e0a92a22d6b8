"""The nightly job and its commands, in the test's own process."""

import signal
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

import pytest

from tests.support.world import World

SPARK_PATIENCE = 300  # seconds: on a busy machine Spark alone takes a minute to start


class Run(NamedTuple):
    """How it ended."""

    status: object
    said: str
    wrong: str  # what it said on standard error


def reconcile(world: World, *options: str, **settings: str) -> Run:
    """`python -m analytics.reconcile` on a world; it uses the Spark session that there is."""
    from analytics.reconcile import main

    return _ended(main, world, *options, **settings)


def closing(world: World, *options: str, **settings: str) -> Run:
    """`python -m analytics.close`, in the same way."""
    from analytics.close import main

    return _ended(main, world, *options, **settings)


def approve(world: World, run: int, *options: str) -> Run:
    """`python -m analytics.approve`."""
    from analytics.approve import main

    return _ended(main, world, str(run), *options)


def _ended(main: Callable[[], None], world: World, *options: str, **settings: str) -> Run:
    at = {"DATABASE_URL": world.postgres_url, "WAREHOUSE_DIR": str(world.folder / "warehouse")}
    said, wrong, ours = StringIO(), StringIO(), signal.getsignal(signal.SIGINT)
    status: object = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(wrong):
        for name, value in (at | settings).items():
            patch.setenv(name, value)
        patch.setattr("sys.argv", [main.__module__, *options])
        try:
            main()
        except SystemExit as end:
            status = end.code
        finally:
            signal.signal(signal.SIGINT, ours)
    return Run(status, said.getvalue(), wrong.getvalue())
