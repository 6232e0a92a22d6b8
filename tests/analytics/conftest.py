"""The nightly job in the test's own process."""

import signal

import pytest

from analytics.reconcile import main
from tests.support.jobs import Reconcile, Run
from tests.support.world import World


@pytest.fixture
def reconcile(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reconcile:
    """`python -m analytics.reconcile` on a world; it uses the Spark session that there is."""

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
