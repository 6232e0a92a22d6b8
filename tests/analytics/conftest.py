"""The nightly job in the test's own process, and warehouses anywhere."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias
from uuid import uuid4

import pytest

from analytics import close
from analytics import reconcile as nightly
from tests.support.books import Books
from tests.support.jobs import Reconcile, Run
from tests.support.object_stores import root_of
from tests.support.world import World

Capture: TypeAlias = pytest.CaptureFixture[str]
Patch: TypeAlias = pytest.MonkeyPatch


@pytest.fixture
def bucket(s3: Path) -> Path:
    """Where a server of S3's protocol keeps a warehouse."""
    bucket = s3 / uuid4().hex
    bucket.mkdir()
    return bucket / "warehouse"


@pytest.fixture(params=["folder", "S3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A warehouse's folder, or that in which a server keeps it: `root_of` tells its root."""
    where: Path = request.getfixturevalue("bucket") if request.param == "S3" else tmp_path
    return where


@pytest.fixture
def books_anywhere(books: Books, place: Path) -> Books:
    return Books(books.world, books.spark, root_of(place), place)


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
