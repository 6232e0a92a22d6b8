"""The nightly job in the test's own process."""

import signal
from collections.abc import Callable
from typing import TypeAlias

import pytest

from analytics import close
from analytics import reconcile as nightly
from tests.support.jobs import Reconcile, Run
from tests.support.world import World

Capture: TypeAlias = pytest.CaptureFixture[str]
Patch: TypeAlias = pytest.MonkeyPatch


@pytest.fixture
def reconcile(monkeypatch: Patch, capsys: Capture) -> Reconcile:
    """`python -m analytics.reconcile` on a world; it uses the Spark session that there is."""
    return in_this_process(nightly.main, monkeypatch, capsys)


@pytest.fixture
def closing(monkeypatch: Patch, capsys: Capture) -> Reconcile:
    """`python -m analytics.close`, in the same way."""
    return in_this_process(close.main, monkeypatch, capsys)


def in_this_process(main: Callable[[], None], monkeypatch: Patch, capsys: Capture) -> Reconcile:
    def run(world: World, *options: str, **settings: str) -> Run:
        at = {"DATABASE_URL": world.postgres_url, "WAREHOUSE_DIR": str(world.folder / "warehouse")}
        for name, value in (at | settings).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr("sys.argv", ["reconcile", *options])
        ours = signal.getsignal(signal.SIGINT)
        try:
            with pytest.raises(SystemExit) as end:
                main()
        finally:
            signal.signal(signal.SIGINT, ours)
        return Run(end.value.code, *capsys.readouterr())

    return run
